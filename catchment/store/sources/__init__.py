"""Tables about sources: due times, runs, gaps, alerts, metrics."""
