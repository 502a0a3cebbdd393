"""The page about the API, from the API's own description of itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from catchment.web.app import described

HEAD = """\
# The API

<!-- Built by `make docs` from catchment/web/api; change it there. -->

`catchment serve` listens on `http://127.0.0.1:8700`. The complete description, with every field and examples, is at
`/openapi.json` of a running server (OpenAPI 3.1, no key needed).

## Keys

Every call below `/api` needs a key: `Authorization: Bearer KEY`, or `X-API-Key: KEY`. The first key is created when
`serve` starts for the first time, and is shown once; only its hash is stored, so it cannot be read back. If you set
your own key as `CATCHMENT_API_KEY`, none is created.

```sh
export KEY=catchment_…
curl -H "Authorization: Bearer $KEY" http://127.0.0.1:8700/api/collector/status
curl -H "Authorization: Bearer $KEY" http://127.0.0.1:8700/api/sources \\
     --json '{"kind": "rss", "target": "https://example.org/feed.xml"}'
```

On a loopback address, the server accepts only requests for the host names `localhost`, `127.0.0.1`, `[::1]` and the one
given with `--host`, so that other web pages cannot reach it through a host name of their own. There is no CORS.

## Lists

A list returns `{"items": […], "next": "…"}`. Pass `next` as `after` to get the next page; null means that this was the
last one. Page 1,000 costs as much as page 1, and no item is shown twice or left out.

## Errors

All errors, on all paths, have the same form:

```json
{"error": {"code": "INVALID_INPUT", "message": "limit: …", "retryable": false, "field": "limit"},
 "meta": {"request_id": "4f0c1d7e8a2b4c6d9e0f1a2b3c4d5e6f"}}
```

`code` is for programs and `message` for people. `retryable` says whether the same request may succeed later, and
`field` which part of the request is wrong; if there are several, `fields` has each of them with its message. A 500
contains no internal details; find them in the log by the `request_id`. You can send your own as `X-Request-ID` (up to
64 letters, digits and `._:-`); it is in the answer and in every log line.

| status | meaning |
|---|---|
| 400 | invalid input |
| 401 | API key missing or unknown |
| 404, 405 | not found; method not allowed |
| 409 | already exists (`existing_id` is its id), or its state does not allow this |
| 413 | the body is too large |
| 500 | internal error |
| 502, 504 | a platform failed, or was too slow |
| 503 | the database or another service is unavailable |

## Paths
"""


def api_page() -> str:
    return HEAD + "\n" + "\n".join(_paths(described().openapi())) + "\n"


def _paths(description: dict[str, Any]) -> Iterator[str]:
    yield "| | path | what | parameters |"
    yield "|---|---|---|---|"
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            what = " ".join(operation["description"].split())
            yield f"| {method.upper()} | `{path}` | {what} | {', '.join(_parameters(description, operation))} |"


def _parameters(description: dict[str, Any], operation: dict[str, Any]) -> Iterator[str]:
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "query":
            yield f"`{parameter['name']}`"
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    for schema in (body, *body.get("anyOf", [])):
        if "$ref" in schema:
            shape = description["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
            yield from (f"{name}{'' if name in shape.get('required', []) else '?'}" for name in shape["properties"])
