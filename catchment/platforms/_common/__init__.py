"""Helpers that several platforms share."""
