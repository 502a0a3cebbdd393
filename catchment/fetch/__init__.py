"""HTTP access to platforms: the only package that opens a connection to one.

`client` is the entry point; each rule has a module of its own: `urls` (targets and redirects), `address_guard`
(forbidden addresses), `robots` (robots.txt), `auth` (credentials), `throttle` and `budgets` (rate limits), `transport`
(the exchange itself), `responses` (what headers and statuses mean). The rules are pure; state that threads share
between requests is held beside them.
"""
