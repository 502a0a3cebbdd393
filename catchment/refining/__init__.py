"""What refining needs to know about a language that is not the platforms' own: HTML."""
