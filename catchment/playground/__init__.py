"""A simulated internet: a world with known content, the sites that show it, faults, and a server on loopback.

`world` is one seeded timeline of places and their posts; it says what existed and what was shown at any time. `sites`
serves it in the real wire format of each platform, one module per platform. `faults` is the plan of faults. `server`
puts them together behind a socket and keeps a log by which a collector can be verified.

The product never imports it, except for the command `demo`.
"""
