"""The standing workload: what collecting costs, as a multiple of what it could cost at least."""
