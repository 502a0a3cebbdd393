"""catchment: a complete, deduplicated, versioned copy of the public conversations you follow."""

__version__ = "0.1.0"
