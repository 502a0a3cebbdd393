"""Settings of a source, checked against the fields that its kind declares."""

from __future__ import annotations

from typing import Any

from catchment.errors import InvalidInput
from catchment.logs import redact
from catchment.messages import reason_of
from catchment.model import Field, Kind, Platform, SettingValues, Source


def checked_settings(kind: Kind, values: SettingValues) -> SettingValues:
    """Returns the settings of a source with values of the right type; refuses names that its kind does not have."""
    fields = {field.name: field for field in kind.fields}
    for name in values:
        if name not in fields:
            names = ", ".join(fields) or "none"
            raise InvalidInput(
                "{kind} has no setting {name!r}",
                "its settings: {known}",
                field=name,
                kind=kind.name,
                name=name,
                known=names,
            )
    return {name: _checked(fields[name], value) for name, value in values.items()}


def merged_settings(kind: Kind, stored: SettingValues, changes: SettingValues) -> SettingValues:
    """Returns the settings with the given ones changed, and those given as None removed."""
    checked = checked_settings(kind, {name: value for name, value in changes.items() if value is not None})
    return {name: value for name, value in {**stored, **checked}.items() if name not in changes or name in checked}


def _checked(field: Field, value: Any) -> Any:
    if field.choices and value not in field.choices:
        raise InvalidInput(
            "{setting}={value}",
            "one of {choices}",
            field=field.name,
            setting=field.name,
            value=_shown(value),
            choices=", ".join(field.choices),
        )
    if field.check is not None:
        try:
            return field.check(value)
        except ValueError as error:
            raise InvalidInput(
                "{setting}={value}",
                "{hint}",
                field=field.name,
                setting=field.name,
                value=_shown(value),
                hint=reason_of(error),
            ) from None
    if field.minimum is None and field.maximum is None:
        return value
    number = _whole_number(value)
    if number is None:
        raise InvalidInput(
            "{setting}={value} is not a whole number", field=field.name, setting=field.name, value=_shown(value)
        )
    low, high = field.minimum, field.maximum
    if (low is not None and number < low) or (high is not None and number > high):
        raise InvalidInput(
            "{setting}={number}",
            "at least {low}" if high is None else "at most {high}" if low is None else "from {low} to {high}",
            field=field.name,
            setting=field.name,
            number=number,
            low=low,
            high=high,
        )
    return number


def _shown(value: Any) -> str:
    """Returns the value for an error message. It may be a secret in the wrong field."""
    return redact(repr(value))[:100]


def _whole_number(value: Any) -> int | None:
    """Returns the number that was given, as text or as a number without a fraction."""
    if isinstance(value, bool):
        return None
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if isinstance(value, float) and number != value else number


def reinterpreted(platform: Platform, kind: Kind, source: Source) -> tuple[str, SettingValues]:
    """Returns the checked URL and settings of a source that was added before its platform was installed. Raises
    InvalidInput if the platform does not accept them."""
    target = platform.understand(source.target, kind.name)
    return target.address, checked_settings(kind, {**target.settings, **source.settings})
