"""The vault: secrets, how they are understood, and the box that they are locked in."""

from catchment.vault.box import Box, Sealed, new_key
from catchment.vault.life import LifeRules
from catchment.vault.safe import Safe
from catchment.vault.secret import Secret, strip_url
from catchment.vault.shown import shown

__all__ = ["Box", "LifeRules", "Safe", "Sealed", "Secret", "new_key", "shown", "strip_url"]
