"""Whether all is well: sources that fell silent, platforms that did."""
