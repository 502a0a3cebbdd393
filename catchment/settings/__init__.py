"""Settings: read once at start and passed on as one frozen value.

Each setting is defined once, in the class `Settings`: name, format, default and meaning. The loader, docs/settings.md,
.env.example and `doctor` are all derived from it.
"""

from catchment.settings.load import default_home, owner_of, read_settings
from catchment.settings.table import DEFINED, Setting, Settings

__all__ = ["DEFINED", "Setting", "Settings", "default_home", "owner_of", "read_settings"]
