"""Sources: adding, importing, previewing, describing and exporting them."""
