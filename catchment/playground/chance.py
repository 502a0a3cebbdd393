"""Dice that fall the same way every time."""

from __future__ import annotations

from random import Random


def chance_of(*what: object) -> Random:
    """The dice for one thing. Thrown for another thing, they fall differently; for the same, never."""
    return Random(" ".join(map(str, what)))  # noqa: S311 — foreseeable is what they must be
