"""Base classes of the schemas, pages of lists, and the error body."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from catchment.model import Record, as_dict, as_json

T = TypeVar("T")
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"}, description="ISO 8601 with offset, UTC.")]


class RequestBody(BaseModel):
    """A body that was sent. A name that is not known here is refused: it is most likely a slip of the pen."""

    model_config = ConfigDict(extra="forbid")


class RecordSchema(BaseModel):
    """The JSON form of a record."""

    @model_validator(mode="before")
    @classmethod
    def _from_record(cls, value: Any) -> Any:
        if not isinstance(value, Record):
            return value
        return {name: part.isoformat() if isinstance(part, date) else part for name, part in as_dict(value).items()}


class Resource(RecordSchema):
    """A resource that is answered. What the product learns to tell later passes through."""

    model_config = ConfigDict(extra="allow")


class JsonResource(Resource):
    """A resource whose record has fields that JSON shows differently."""

    @model_validator(mode="before")
    @classmethod
    def _from_record(cls, value: Any) -> Any:
        return as_json(value) if isinstance(value, Record) else value


def example(**fields: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [fields]})


class PageSchema(RecordSchema, Generic[T]):
    """A part of a list. `next` is given as `after` to get what follows; null: this was the end."""

    items: list[T]
    next: str | None


class Problem(BaseModel):
    code: str = Field(description="For programs: it does not change with the words.")
    message: str = Field(description="For people: what is wrong, and what would help.")
    retryable: bool = Field(description="Whether the same request may succeed later.")
    field: str | None = Field(default=None, description="Which part of the request is wrong, where it is one.")
    existing_id: int | None = Field(default=None, description="The source that follows this already.")


class Meta(BaseModel):
    request_id: str = Field(description="Also in the header X-Request-ID, and in every line of the log about it.")


class Failed(BaseModel):
    """Every failure, on every path."""

    model_config = example(
        error={"code": "NOT_FOUND", "message": "there is no source 7", "retryable": False},
        meta={"request_id": "4f0c1d7e8a2b4c6d9e0f1a2b3c4d5e6f"},
    )
    error: Problem
    meta: Meta


Responses: TypeAlias = dict[int | str, dict[str, Any]]


def failure(status: int, description: str) -> Responses:
    """Documents a failure of an operation."""
    return {status: {"model": Failed, "description": description}}
