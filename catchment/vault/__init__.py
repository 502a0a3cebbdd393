"""The vault: secrets, how they are understood, and the box that they are locked in."""

from catchment.vault.box import Box, Sealed, new_key
from catchment.vault.secret import Secret, strip_url

__all__ = ["Box", "Sealed", "Secret", "new_key", "strip_url"]
