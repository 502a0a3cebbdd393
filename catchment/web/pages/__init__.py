"""Pages for people, in two languages: one module per page, route and view together."""
