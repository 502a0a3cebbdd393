"""Event delivery to webhooks and hooks, and watches that turn matching items into events."""
