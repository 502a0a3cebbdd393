"""JSON decoders by type, each made once.

msgspec 0.22 prepares a type when it is first used. Two threads that do so at the same time crash the process with
SIGSEGV, so every decoder of a record is made here, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, TypeVar

import msgspec

Shape = TypeVar("Shape")
_ONE_AT_A_TIME = RLock()
_made: dict[Any, msgspec.json.Decoder[Any]] = {}


def json_decoder(shape: type[Shape], dec_hook: Callable[[type, Any], Any] | None = None) -> msgspec.json.Decoder[Shape]:
    """Returns the decoder of a type. `dec_hook`: see msgspec."""
    decoder = _made.get((shape, dec_hook))
    if decoder is None:
        with _ONE_AT_A_TIME:
            decoder = _made[shape, dec_hook] = msgspec.json.Decoder(shape, dec_hook=dec_hook)
    return decoder


def converted(value: Any, shape: type[Shape]) -> Shape:
    """Returns decoded JSON as a record. Raises `msgspec.ValidationError`."""
    json_decoder(shape)
    return msgspec.convert(value, shape)
