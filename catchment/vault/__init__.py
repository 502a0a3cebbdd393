"""The vault: secrets, how they are understood, and the box that they are locked in."""

from catchment.vault.box import Box, Sealed, new_key
from catchment.vault.safe import Safe
from catchment.vault.secret import Secret, strip_url

__all__ = ["Box", "Safe", "Sealed", "Secret", "new_key", "strip_url"]
