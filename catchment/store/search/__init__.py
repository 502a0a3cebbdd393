"""The search index, queries and sorted lists."""
