"""Credentials: secrets, their parsing and encryption, the pool, and the lifecycle of each credential.

`lifecycle` decides, and is pure; `manager` writes what it decides; `pool` gives credentials out to requests;
`secrets` has the stored ones and those of the environment.
"""
