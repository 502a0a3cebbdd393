"""The HTTP door: reads a request, calls one verb, shows the result. No rules live here."""
