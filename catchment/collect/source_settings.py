"""Settings of a source, checked against the fields that its kind declares."""

from __future__ import annotations

from typing import Any

from catchment.errors import InvalidInput
from catchment.logs import redact
from catchment.messages import reason_of
from catchment.model import Field, Kind, Platform, SettingValues, Source


def checked_settings(kind: Kind, given: SettingValues) -> SettingValues:
    """Returns the settings of a source with values of the right type; refuses names that its kind does not have."""
    fields = {field.name: field for field in kind.fields}
    for name in given:
        if name not in fields:
            known = ", ".join(fields) or "none"
            raise InvalidInput(
                "{kind} has no setting {name!r}",
                "its settings: {known}",
                field=name,
                kind=kind.name,
                name=name,
                known=known,
            )
    return {name: _checked(fields[name], value) for name, value in given.items()}


def merged_settings(kind: Kind, known: SettingValues, given: SettingValues) -> SettingValues:
    """Returns the settings with the given ones changed, and those given as None removed."""
    checked = checked_settings(kind, {name: value for name, value in given.items() if value is not None})
    return {name: value for name, value in {**known, **checked}.items() if name not in given or name in checked}


def _checked(field: Field, value: Any) -> Any:
    if field.choices and value not in field.choices:
        raise InvalidInput(
            "{setting}={value!r}",
            "one of {choices}",
            field=field.name,
            setting=field.name,
            value=value,
            choices=", ".join(field.choices),
        )
    if field.check is not None:
        try:
            return field.check(value)
        except ValueError as error:
            # The value of a header may be a secret in the wrong field.
            raise InvalidInput(
                "{setting}={value}",
                "{hint}",
                field=field.name,
                setting=field.name,
                value=redact(repr(value))[:100],
                hint=reason_of(error),
            ) from None
    if field.minimum is None and field.maximum is None:
        return value
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise InvalidInput(
            "{setting}={value!r} is not a whole number", field=field.name, setting=field.name, value=value
        ) from None
    low, high = field.minimum, field.maximum
    if (low is not None and number < low) or (high is not None and number > high):
        raise InvalidInput(
            "{setting}={number}",
            "from {low} to {high}",
            field=field.name,
            setting=field.name,
            number=number,
            low=low,
            high=high,
        )
    return number


def understood_anew(platform: Platform, kind: Kind, source: Source) -> tuple[str, SettingValues]:
    """Returns the checked URL and settings of a source that was added before its platform was installed. Raises
    InvalidInput if the platform does not accept them."""
    target = platform.understand(source.target, kind.name)
    return target.address, checked_settings(kind, {**target.settings, **source.settings})
