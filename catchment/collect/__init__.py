"""Collection: visits to sources, the scheduler that runs them, follow-ups, rechecks and reparsing."""
