"""A small internet of its own: a world that knows the truth, its voices, its moods, and a server on loopback.

`world` is one seeded timeline of places and their posts; it can be asked what existed and what was shown at any moment.
`voices` tell of it in the real wire format of each platform, one module for one platform's language. `moods` is the
plan of faults. `server` puts them together behind a socket and keeps a log by which a collector can be judged.

The product never imports it, except for the command `demo`.
"""
