"""Rows to records and back: a record's annotations say how each column is encoded. Nothing is read by position.

    bool       0 and 1 in SQLite
    datetime   whole microseconds since 1970
    tuple      a JSON list
    Message    its code; with parameters, a JSON object
    dict       a JSON object
    Record     a column for each of its fields, prefixed with the name of the outer field: `watermark: Watermark | None`
               is stored as `watermark_at` and `watermark_ids`, and is None if the first of these is NULL

Mappers are compiled once for each record and list of columns: they are as fast as code written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from enum import StrEnum
from functools import cache
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from catchment import messages
from catchment.clock import micros, moment
from catchment.decoders import json_decoder
from catchment.messages import Message
from catchment.model import Record

R = TypeVar("R", bound=Record)
Row = tuple[Any, ...]
Scope = dict[str, Any]
"""The names that compiled code may use."""
_encode = msgspec.json.Encoder(enc_hook=messages.plain).encode


class FieldType(NamedTuple):
    """The type of a record's field, without `| None`."""

    type: Any
    is_optional: bool

    @property
    def is_list(self) -> bool:
        return get_origin(self.type) is tuple


@cache
def field_types(record: type[Record]) -> dict[str, FieldType]:
    """Returns the types of a record's fields, by name."""
    hints = get_type_hints(record)
    return {name: _field_type(hints[name]) for name in record.__struct_fields__}


def _field_type(hint: Any) -> FieldType:
    if get_origin(hint) not in (Union, UnionType):
        return FieldType(hint, False)
    (type_,) = (part for part in get_args(hint) if part is not NoneType)
    return FieldType(type_, True)


def mapper(record: type[R], names: tuple[str, ...], extra: tuple[str, ...] = ()) -> Callable[..., R]:
    """Returns a function that makes the record of the values of these columns, in this order, followed by the `extra`
    fields, which are passed as they are.

    Raises KeyError for a column that is not a field of the record; the record's fields without a column need a default.
    """
    types = field_types(record)
    scope: Scope = {"record": record, "moment": moment}
    decoded = {name: _decoding(name, name, types[name], scope) for name in names} | {name: name for name in extra}
    arguments, is_positional = [], True  # Positional arguments are ten times as fast.
    for name, parameter in signature(record).parameters.items():
        is_positional = is_positional and name in decoded and parameter.kind is not Parameter.KEYWORD_ONLY
        if name in decoded:
            arguments.append(decoded[name] if is_positional else f"{name}={decoded[name]}")
    return cast(Callable[..., R], _compiled(f"lambda {', '.join(decoded)}: record({', '.join(arguments)})", scope))


def _decoding(name: str, value: str, field: FieldType, scope: Scope) -> str:
    """Returns the expression that decodes a column's value; `value` is the expression of the value itself."""
    if field.is_list:
        scope[f"decode_{name}"] = json_decoder(field.type, messages.restored).decode
        return f"() if {value} == '[]' else decode_{name}({value})"
    if field.type is datetime:
        return f"None if {value} is None else moment({value})" if field.is_optional else f"moment({value})"
    if field.type is Message:
        scope["message"] = messages.decode
        return f"None if {value} is None else message({value})" if field.is_optional else f"message({value})"
    if field.type in (bool, bytes) and not field.is_optional:
        return f"{field.type.__name__}({value})"
    return value


@cache
def reader(record: type[R], names: tuple[str, ...]) -> Callable[[Row], R]:
    """Returns a function that makes the record of a row with these columns. Other columns are ignored; a field without
    a column has its default."""
    return _reader(record, names, "")


def _reader(record: type[R], names: tuple[str, ...], prefix: str) -> Callable[[Row], R]:
    scope: Scope = {"record": record, "moment": moment, "decode": msgspec.json.decode}
    arguments = []
    for name, field in field_types(record).items():
        column = prefix + name
        if _is_record(field.type):
            first = names.index(f"{column}_{columns(field.type)[0]}")
            scope[f"read_{name}"] = _reader(field.type, names, f"{column}_")
            arguments.append(f"{name}=None if row[{first}] is None else read_{name}(row)")
        elif column in names:
            value = f"row[{names.index(column)}]"
            arguments.append(f"{name}={_decoded_cell(name, value, field, scope)}")
    return cast(Callable[[Row], R], _compiled(f"lambda row: record({', '.join(arguments)})", scope))


def _decoded_cell(name: str, value: str, field: FieldType, scope: Scope) -> str:
    """The same as `_decoding`, for results of any query: sums are decimals on PostgreSQL, enumerations are texts."""
    if get_origin(field.type) is dict:
        decoded = f"{{}} if {value} == '{{}}' else decode({value})"
    elif field.type in (int, float) or (isinstance(field.type, type) and issubclass(field.type, StrEnum)):
        scope[f"type_{name}"] = field.type
        decoded = f"type_{name}({value})"
    else:
        return _decoding(name, value, field, scope)
    return f"None if {value} is None else ({decoded})" if field.is_optional else decoded


@cache
def columns(record: type[Record]) -> tuple[str, ...]:
    """Returns the names of the columns that hold the fields of a record, in order."""
    names: list[str] = []
    for name, field in field_types(record).items():
        names += [f"{name}_{column}" for column in columns(field.type)] if _is_record(field.type) else [name]
    return tuple(names)


def values(record: Record) -> tuple[Any, ...]:
    """Returns what is stored in `columns` of its type, in order."""
    return _writer(type(record))(record)


@cache
def _writer(record: type[Record]) -> Callable[[Record], tuple[Any, ...]]:
    scope: Scope = {"micros": micros, "encode_list": encode_list, "encode": encode}
    cells = []
    for name, field in field_types(record).items():
        value = f"record.{name}"
        if _is_record(field.type):
            scope[f"write_{name}"] = _writer(field.type)
            scope[f"nothing_{name}"] = tuple(
                "[]" if part.is_list else None for part in field_types(field.type).values()
            )
            cells.append(f"*(nothing_{name} if {value} is None else write_{name}({value}))")
        else:
            is_plain = field.is_list or field.type in (str, int, float, bool, bytes, datetime)
            cells.append(_encoding(value, field) if is_plain else f"encode({value})")
    return cast(Callable[[Record], tuple[Any, ...]], _compiled(f"lambda record: ({', '.join(cells)},)", scope))


def _is_record(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, Record)


def encode(value: Any) -> Any:
    """Returns a field's value as its column stores it."""
    if isinstance(value, datetime):
        return micros(value)
    if isinstance(value, dict):
        return _encode(value).decode()
    if isinstance(value, Message):
        return messages.encode(value)
    return encode_list(value) if isinstance(value, tuple) else str(value) if isinstance(value, StrEnum) else value


def encode_list(values: tuple[Any, ...]) -> str:
    return _encode(values).decode() if values else "[]"


def row_builder(
    record: type[R], names: tuple[str, ...], decided: frozenset[str], shared: frozenset[str]
) -> Callable[[R, Mapping[str, Any], Mapping[str, Any]], tuple[Any, ...]]:
    """Returns a function that makes a row of these columns: the `decided` ones from a mapping and the `shared` ones
    from another, which is the same for many rows; both have them encoded. The others come from the record. A flag that
    is not stated is stored as false."""
    types = field_types(record)

    def value(name: str) -> str:
        if name in decided or name in shared:
            return f"{'decided' if name in decided else 'shared'}[{name!r}]"
        encoded = _encoding(f"record.{name}", types[name])
        return f"({encoded} or False)" if types[name] == FieldType(bool, True) else encoded

    code = f"lambda record, decided, shared: ({', '.join(map(value, names))},)"
    scope = {"micros": micros, "encode_list": encode_list}
    return cast(Callable[[R, Mapping[str, Any], Mapping[str, Any]], tuple[Any, ...]], _compiled(code, scope))


def default_tester(record: type[R], names: Collection[str]) -> Callable[[R], bool]:
    """Returns a function that tests whether all of these fields have their default: None, false or an empty tuple."""
    tests = [
        f"record.{name} is None" if field_types(record)[name].is_optional else f"not record.{name}" for name in names
    ]
    return cast(Callable[[R], bool], _compiled(f"lambda record: {' and '.join(tests)}", {}))


def _encoding(value: str, field: FieldType) -> str:
    """Returns the expression that encodes a field's value."""
    if field.is_list:
        return f"encode_list({value})"
    if field.type is datetime:
        return f"None if {value} is None else micros({value})" if field.is_optional else f"micros({value})"
    return value


def _compiled(code: str, scope: Scope) -> Any:
    return eval(code, scope)  # noqa: S307 - made of the names of our own fields
