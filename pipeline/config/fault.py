"""One of pydantic's errors, with all that a sentence about it needs: where it stands, what is written there, what would be right."""

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, get_args

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticUndefined

from pipeline.config.duration import spoken_duration
from pipeline.config.keys import Place, fields, is_duration, members, metadata, place, tags
from pipeline.config.mistake import Location
from pipeline.config.yaml_file import YamlFile

_LONGEST: Final = 60
_KEY: Final = "[key]"
"""Pydantic's last word of where an error is that is about a mapping's key, and not about what stands under it."""
_LIMITS: Final[dict[str, Any]] = {"ge": Ge, "gt": Gt, "le": Le, "lt": Lt}
RANGES: Final = {"greater_than_equal": "ge", "greater_than": "gt", "less_than_equal": "le", "less_than": "lt"}
"""Pydantic's errors about limits, and what each calls its limit."""


class Fault:
    """An error of pydantic's. ``location`` is in the file's terms; ``shown`` is what stands there, as it is written."""

    def __init__(self, details: ErrorDetails, model: type[BaseModel], file: YamlFile) -> None:
        self.model = model
        self.type: str = details["type"]
        self.context: dict[str, Any] = details.get("ctx", {})
        self.input: Any = details["input"]
        self.message = str(self.context["error"]) if self.type == "value_error" and "error" in self.context else details["msg"]
        of_a_key = details["loc"][-1:] == (_KEY,) and self.type != "extra_forbidden"
        self._place: Place = place(model, details["loc"][:-1] if of_a_key else details["loc"])
        self.location = self._place.location
        if self.type == "value_error":
            self.location = _named_in(self.message, self.location, file.at(self.location), self._place.annotation)
        self.secret = SecretStr in members(self._place.annotation)
        self.shown = "the value" if self.secret else _shown("" if of_a_key else file.written(self.location), self.input)

    @property
    def key(self) -> str:
        """The key that the error is about."""
        return str(self.location[-1]) if self.location else ""

    @property
    def meaning(self) -> str:
        """What the key is for, in a few words; empty where nobody says."""
        text = (self._place.field.description or "") if self._place.field is not None else ""
        return text.split("\n", 1)[0].split(". ", 1)[0].rstrip(".")

    @property
    def example(self) -> str:
        """The default, as it is written: the nearest thing that is right. Empty where there is none."""
        return example_of(self._place.field)

    @property
    def siblings(self) -> list[str]:
        """The keys that may stand where the wrong one stands."""
        return list(fields(self._place.owner)) if self._place.owner is not None else []

    @property
    def parts(self) -> list[str]:
        """The keys that may stand below this one."""
        models = [one for one in members(self._place.annotation) if isinstance(one, type) and issubclass(one, BaseModel)]
        return list(dict.fromkeys(name for one in models for name in fields(one)))

    @property
    def allowed(self) -> list[str]:
        """The words that may stand here, where only some may."""
        options = members(self._place.annotation)
        words = [str(word.value) for one in options if hasattr(one, "__members__") for word in one]
        return words + [str(word) for one in options for word in get_args(one) if not isinstance(word, type)]

    @property
    def kinds(self) -> list[str]:
        """The words that tell the members of a union apart."""
        key = str(self.context.get("discriminator", "")).strip("'")
        return sorted(tags(one)[key] for one in members(self._place.annotation) if key in tags(one))

    @property
    def limits(self) -> dict[str, Any]:
        """The limits of the value, by pydantic's names for them: ge, gt, le, lt."""
        return dict(self._limits())

    def _limits(self) -> Iterator[tuple[str, Any]]:
        for constraint in metadata(self._place.field) if self._place.field is not None else ():
            yield from ((name, getattr(constraint, name)) for name, kind in _LIMITS.items() if isinstance(constraint, kind))
        if self.type in RANGES:
            yield RANGES[self.type], self.context[RANGES[self.type]]


def example_of(field: FieldInfo | None) -> str:
    """Return a field's default as it is written, where it is a plain value; else nothing."""
    default = field.default if field is not None else None
    if (
        field is None
        or default is None
        or default is PydanticUndefined
        or not isinstance(default, str | int | float | Decimal | Path)
    ):
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, int) and is_duration(field):
        return spoken_duration(default)
    return f"{default:g}" if isinstance(default, float) else str(default)


def _named_in(message: str, location: Location, data: Any, annotation: Any) -> Location:
    """Return the more exact place that a validator of a whole section speaks of: one of its keys, or the last entry so named."""
    known = [name for one in members(annotation) if isinstance(one, type) and issubclass(one, BaseModel) for name in fields(one)]
    if (first := message.split(" ", 1)[0]) in known:
        return (*location, first)
    words = set(re.findall(r"[\w.-]+", message))
    found = location
    for key, part in data.items() if isinstance(data, dict) else ():
        for index, entry in enumerate(part if isinstance(part, list) else ()):
            if isinstance(entry, dict) and entry.get("name") in words:
                found = (*location, key, index, "name")
    return found


def _shown(written: str, value: Any) -> str:
    if not written and isinstance(value, dict | list | tuple):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = written or str(value)
    return (text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…") or "nothing"
