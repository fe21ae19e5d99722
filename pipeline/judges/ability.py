"""Ability: what an endpoint takes of what a call may ask for. Found out by trying, richest first; one step down for each refusal."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec


class Form(StrEnum):
    """How the form of the reply is asked for, the strictest first."""

    JSON_SCHEMA = "json_schema"
    """As a named JSON Schema, the way OpenAI has it."""
    OBJECT_SCHEMA = "json_object_schema"
    """As a JSON object with a schema beside it, the way llama.cpp has it."""
    JSON_OBJECT = "json_object"
    TEXT = "text"
    """In the words of the prompt only."""


class Limit(StrEnum):
    """Under which name the most tokens of a reply are asked for."""

    MAX_TOKENS = "max_tokens"
    MAX_COMPLETION_TOKENS = "max_completion_tokens"
    NONE = "none"


class Ability(msgspec.Struct, frozen=True):
    """What one endpoint takes for one model. ``usage`` is None until an answer told."""

    form: Form = Form.JSON_SCHEMA
    limit: Limit = Limit.MAX_TOKENS
    seed: bool = True
    temperature: bool = True
    usage: bool | None = None

    def body(self, schema: Mapping[str, Any], most_tokens: int, seed: int | None, temperature: float) -> dict[str, Any]:
        """Return what of a call's wishes is sent along."""
        wishes = {**_format(self.form, schema)}
        if self.limit is not Limit.NONE:
            wishes[self.limit.value] = most_tokens
        if self.seed and seed is not None:
            wishes["seed"] = seed
        if self.temperature:
            wishes["temperature"] = temperature
        return wishes

    def without(self, refusal: "Refusal") -> "Ability | None":
        """Return the next milder ability after a refusal; None where nothing is left to leave out.

        A refusal that names what it is about is believed. One that names nothing is about the form, and, where that cannot be
        milder, about everything else at once.
        """
        if refusal.names("max_tokens", "max_completion_tokens") and self.limit is not Limit.NONE:
            return msgspec.structs.replace(self, limit=_next(Limit, self.limit))
        if refusal.names("seed") and self.seed:
            return msgspec.structs.replace(self, seed=False)
        if refusal.names("temperature") and self.temperature:
            return msgspec.structs.replace(self, temperature=False)
        if self.form is not Form.TEXT:
            return msgspec.structs.replace(self, form=_next(Form, self.form))
        bare = msgspec.structs.replace(self, limit=Limit.NONE, seed=False, temperature=False)
        return None if bare == self or refusal.is_fault else bare


class Refusal(msgspec.Struct, frozen=True):
    """How an endpoint answered a call that it did not take."""

    status: int
    said: str
    """Its sentence and the parameter that it names."""

    @property
    def is_one(self) -> bool:
        """Whether it may be about what was asked for beside the messages. Some endpoints fall over what they do not know."""
        return (self.status in _REFUSED or self.is_fault) and not _TOO_LONG.search(self.said)

    @property
    def is_fault(self) -> bool:
        """Whether it may as well be an outage."""
        return self.status in _FAULT

    def names(self, *parameters: str) -> bool:
        """Whether it says that it is about one of these."""
        return self.status in _REFUSED and any(re.search(rf"\b{one}\b", self.said) for one in parameters)

    @property
    def is_named(self) -> bool:
        """Whether it says what it is about: then it is believed also of an endpoint that took all of it before."""
        return self.names("response_format", "json_schema", "max_tokens", "max_completion_tokens", "seed", "temperature")


_REFUSED: Final = frozenset({400, 415, 422})
_FAULT: Final = frozenset({500, 501})
_TOO_LONG: Final = re.compile(r"context.(length|window|size)", re.IGNORECASE)
"""What is about the messages: asking for less beside them would not help."""


def _next(kind: Any, one: StrEnum) -> Any:
    order = list(kind)
    return order[order.index(one) + 1]


def _format(form: Form, schema: Mapping[str, Any]) -> dict[str, Any]:
    match form:
        case Form.JSON_SCHEMA:
            named = {"name": "grade", "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        case Form.OBJECT_SCHEMA:
            return {"response_format": {"type": "json_object", "schema": schema}}
        case Form.JSON_OBJECT:
            return {"response_format": {"type": "json_object"}}
        case Form.TEXT:
            return {}
