"""The vault: secrets, how they are understood, the box that they are locked in, and the life of those who carry them.

`life` decides, and is pure; `keeper` writes what it decides; `pool` gives credentials out to requests; `environment`
finds those that are not stored at all.
"""

from catchment.vault.box import Box, Sealed, new_key
from catchment.vault.keeper import Keeper, rules_from
from catchment.vault.life import LifeRules
from catchment.vault.pool import Pool
from catchment.vault.safe import Safe
from catchment.vault.secret import Secret, strip_url
from catchment.vault.shown import shown

__all__ = [
    "Box",
    "Keeper",
    "LifeRules",
    "Pool",
    "Safe",
    "Sealed",
    "Secret",
    "new_key",
    "rules_from",
    "shown",
    "strip_url",
]
