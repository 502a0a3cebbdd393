"""Telling others: events brought to their listeners, and watches that make events of items."""
