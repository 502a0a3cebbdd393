"""Engines that run the table of jobs: embedded, inside the serving process; distributed ones go beside it."""
