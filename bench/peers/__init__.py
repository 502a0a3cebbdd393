"""Others who do the same work, on the same workload: each in its usual way, with a SQLite database at the end.

They live in an environment of their own, `.venv-bench`, and are run as `python -m bench.peers.NAME DEED BASE FEEDS
HOME`. The deeds: `prepare` (once, off the clock), `idle` (start up, open the database, do nothing), `collect`.
"""
