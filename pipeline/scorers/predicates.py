"""Predicates on a call's arguments: small, typed, and with a third answer for what cannot be told."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, StrictBool, StrictStr, model_validator

from pipeline.model.settings import Settings
from pipeline.model.step import ToolCall
from pipeline.patterns import PatternError, compiled
from pipeline.scorers.calls import canonical, has_arguments, number
from pipeline.scorers.check import Missing


def readable(text: str) -> str:
    """Return a pattern that RE2 reads."""
    try:
        compiled(text)
    except PatternError as error:
        raise ValueError(f"{error}; to match it as it stands write equals") from error
    return text


Number = Decimal
"""Read as it was written: 0.1 is one tenth."""
Scalar = StrictBool | Number | StrictStr | None


class Predicate(Settings):
    """What an argument must be for a rule to concern the call. All that is written must hold."""

    equals: Scalar = None
    """The value; numbers by value, texts without regard to spacing. ``null`` is an argument that was not given."""
    one_of: tuple[Scalar, ...] = Field(default=(), alias="in")
    """Any of these values."""
    greater_than: Number | None = None
    """A number below the argument."""
    less_than: Number | None = None
    """A number above the argument."""
    matches: Annotated[str, AfterValidator(readable)] | None = None
    """A pattern as RE2 reads it, which is found in the text; ``^`` and ``$`` tie it to the ends."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("an argument's condition is empty; write one of equals, in, greater_than, less_than, matches")
        return self


Where = Mapping[str, Predicate]
"""Conditions by argument; a dotted name looks inside objects."""


def all_hold(answers: Iterable[bool | Missing]) -> bool | Missing:
    """Join answers: false if one is, else what is missing if anything is, else true."""
    missing: Missing | None = None
    for answer in answers:
        if isinstance(answer, Missing):
            missing = missing or answer
        elif not answer:
            return False
    return True if missing is None else missing


def holds(where: Where, call: ToolCall) -> bool | Missing:
    """Say whether the call's arguments meet every condition."""
    return all_hold(_holds(predicate, argument(call, name)) for name, predicate in where.items())


def argument(call: ToolCall, name: str) -> Any:
    """Return an argument's value, None where it was not given, or what is missing to tell."""
    if not has_arguments(call):
        return Missing.ARGUMENTS_NOT_CAPTURED
    if not isinstance(call.arguments, dict):
        return Missing.ARGUMENTS_NOT_COMPARABLE
    if name in call.arguments:
        return call.arguments[name]
    value: Any = call.arguments
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _holds(predicate: Predicate, value: Any) -> bool | Missing:
    if isinstance(value, Missing):
        return value
    written = predicate.model_fields_set
    answers: list[bool | Missing] = []
    if "equals" in written:
        answers.append(canonical(value) == canonical(predicate.equals))
    if "one_of" in written:
        answers.append(any(canonical(value) == canonical(one) for one in predicate.one_of))
    if predicate.greater_than is not None:
        answers.append(_compares(value, above=predicate.greater_than))
    if predicate.less_than is not None:
        answers.append(_compares(value, below=predicate.less_than))
    if predicate.matches is not None:
        answers.append(_matches(predicate.matches, value))
    return all_hold(answers)


def _compares(value: Any, above: Decimal | None = None, below: Decimal | None = None) -> bool | Missing:
    if value is None:
        return False
    exact = number(value)
    if exact is None:
        return Missing.ARGUMENTS_NOT_COMPARABLE
    return (above is None or exact > above) and (below is None or exact < below)


def _matches(pattern: str, value: Any) -> bool | Missing:
    if value is None:
        return False
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, str | int | float):
        text = str(value)
    else:
        return Missing.ARGUMENTS_NOT_COMPARABLE
    return compiled(pattern).matches(text.encode(errors="replace"))
