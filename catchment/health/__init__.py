"""Health of a deployment: metrics, monitors, stale sources and platforms, reachability of sites."""
