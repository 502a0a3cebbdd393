"""HTTP: the JSON API and the pages. A handler reads the request, calls one function and shows the result."""
