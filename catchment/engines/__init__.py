"""Engines that run the table of jobs: the embedded one inside the serving process, the distributed one on
Celery workers."""
