"""Base classes of the schemas, schemas that derive from records, pages of lists, and the error body."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from catchment.messages import Message
from catchment.model import Record, as_json
from catchment.model.record import shown_names

T = TypeVar("T")
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"}, description="ISO 8601 with offset, UTC.")]
Date = Annotated[str, Field(json_schema_extra={"format": "date"}, description="In UTC.")]


class RequestBody(BaseModel):
    """A request body. Unknown names are rejected: most likely they are misspelt."""

    model_config = ConfigDict(extra="forbid")


class RecordSchema(BaseModel):
    """The JSON form of a record."""

    @model_validator(mode="before")
    @classmethod
    def _from_record(cls, value: Any) -> Any:
        return as_json(value) if isinstance(value, Record) else value


class Resource(RecordSchema):
    """A resource in a response. It may have more fields than its schema declares."""

    model_config = ConfigDict(extra="allow")


S = TypeVar("S", bound=RecordSchema)
_SCHEMAS: dict[Any, type[RecordSchema]] = {}
_JSON_TYPES: dict[Any, Any] = {datetime: Moment, date: Date, bytes: str, Message: str}


def shows(record: type[Record], /, **about: Any) -> Callable[[type[S]], type[S]]:
    """Class decorator: adds the fields of a record to a schema; of a view its properties, too.

    `about` describes fields: a text, or a type and a text where the type in JSON is narrower than the record's.
    """

    def with_fields(schema: type[S]) -> type[S]:
        fields: dict[str, Any] = {}
        hints = get_type_hints(record)
        for name in shown_names(record):
            hint = hints[name] if name in hints else get_type_hints(getattr(record, name).fget)["return"]
            type_, text = about[name] if isinstance(about.get(name), tuple) else (_json_type(hint), about.get(name))
            if name not in schema.model_fields:
                fields[name] = type_, Field(description=text) if text else Field()
        model = create_model(
            schema.__name__, __base__=schema, __module__=schema.__module__, __doc__=schema.__doc__, **fields
        )
        _SCHEMAS.setdefault(record, model)
        return model

    return with_fields


def _json_type(hint: Any) -> Any:
    """The type of a record's field in JSON: of a record that has a schema, that one."""
    origin, args = get_origin(hint), [_json_type(arg) for arg in get_args(hint)]
    if origin in (Union, UnionType):
        return Union[tuple(args)]  # noqa: UP007 — the members are known at run time only
    if origin in (tuple, list, Sequence):
        return list.__class_getitem__(args[0])
    if origin in (dict, Mapping):
        return dict.__class_getitem__(tuple(args))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Literal[tuple(member.value for member in hint)]
    if isinstance(hint, type) and issubclass(hint, Record):
        return _SCHEMAS.get(hint, dict[str, Any])
    return _JSON_TYPES.get(hint, hint)


def example(**fields: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [fields]})


class PageSchema(RecordSchema, Generic[T]):
    """A page of a list. Pass `next` as `after` to get the next page; null: this was the last one."""

    items: list[T]
    next: str | None


class FieldProblemSchema(BaseModel):
    field: str
    message: str


class Problem(BaseModel):
    code: str = Field(description="For programs. It stays the same when the wording changes.")
    message: str = Field(description="Human-readable: what is wrong and how to fix it.")
    retryable: bool = Field(description="Whether the same request may succeed later.")
    field: str | None = Field(default=None, description="The part of the request that is wrong; of several, the first.")
    fields: list[FieldProblemSchema] | None = Field(
        default=None, description="If several parts of the request are wrong: each of them."
    )
    existing_id: int | None = Field(default=None, description="The existing source.")
    task_id: str | None = Field(default=None, description="The task that is running.")


class Meta(BaseModel):
    request_id: str = Field(description="Also in the header X-Request-ID and in the log.")


class Failed(BaseModel):
    """The body of every error response."""

    model_config = example(
        error={"code": "NOT_FOUND", "message": "there is no source 7", "retryable": False},
        meta={"request_id": "4f0c1d7e8a2b4c6d9e0f1a2b3c4d5e6f"},
    )
    error: Problem
    meta: Meta


Responses: TypeAlias = dict[int | str, dict[str, Any]]


def failure(status: int, description: str) -> Responses:
    """Documents an error response of an operation."""
    return {status: {"model": Failed, "description": description}}
