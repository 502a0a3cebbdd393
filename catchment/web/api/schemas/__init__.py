"""Pydantic schemas of the API: request bodies and responses, by topic."""
