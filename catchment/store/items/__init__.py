"""Tables about items: writing pages, reading items and their history, deletion."""
