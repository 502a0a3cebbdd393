"""Pure text functions: cleaning, HTML, character sets, dates, search tokens and printable text."""
