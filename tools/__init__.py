"""Tools for those who work on catchment; not part of what is installed."""
