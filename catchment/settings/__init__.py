"""Settings: read once, at the door, and handed on as one frozen value.

Each is defined once, in the class `Settings`: its name, how it is written, its default, what it means. The reader,
docs/settings.md, .env.example and `doctor` all come from there.
"""

from catchment.settings.reading import default_home, owner_of, read_settings
from catchment.settings.table import DEFINED, Setting, Settings

__all__ = ["DEFINED", "Setting", "Settings", "default_home", "owner_of", "read_settings"]
