"""Reproducible random numbers."""

from __future__ import annotations

from random import Random


def chance_of(*what: object) -> Random:
    """A random generator seeded by the arguments: the same arguments give the same numbers."""
    return Random(" ".join(map(str, what)))  # noqa: S311 — must be reproducible
