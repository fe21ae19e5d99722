"""Explain: what validation says of a file, as mistakes by line, in our words."""

from decimal import Decimal, InvalidOperation
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from pipeline.config.fault import Fault, example_of
from pipeline.config.keys import is_duration, is_nullable, members, written
from pipeline.config.mistake import Location, Mistake, spoken
from pipeline.config.sentences import sentence
from pipeline.config.yaml_file import YamlFile

_NUMBERS: Final = frozenset({int, float, Decimal})
_COUNTED: Final = frozenset({int, Decimal})
"""Numbers of any size to Python; the store and the libraries end at 64 bits."""
_GREATEST: Final = 2**63 - 1


def explain(error: ValidationError, model: type[BaseModel], file: YamlFile) -> list[Mistake]:
    """Return the mistakes behind a validation error, one for each place, by line."""
    found: dict[Location, list[Fault]] = {}
    for details in error.errors(include_url=False):
        fault = Fault(details, model, file)
        found.setdefault(fault.location, []).append(fault)
    return sorted(
        Mistake(file.line(location), spoken(location), file.conceal(sentence(faults), location))
        for location, faults in found.items()
    )


def overlooked(model: type[BaseModel], file: YamlFile) -> list[Mistake]:
    """Return what validation takes for right and nobody can mean.

    A duration without a unit, true or false for a number, a number that nothing can hold, a key without a value where none would
    mean something.
    """
    found: list[Mistake] = []
    for location, field, value in written(model, file.data):
        options = set(members(field.annotation))
        if isinstance(value, bool) and options & _NUMBERS and bool not in options:
            what = f"{file.written(location)} is not a number; write {example_of(field) or 'a number'}"
        elif isinstance(value, int) and not isinstance(value, bool) and is_duration(field):
            what = f"{value} has no unit; write {value}s for seconds, or a number with ms, m, h or d"
        elif options & _COUNTED and str not in options and not is_duration(field) and _too_large(value):
            what = f"is too large; write {_GREATEST} or less{f', such as {one}' if (one := example_of(field)) else ''}"
        elif value is None and not file.written(location) and is_nullable(field):
            what = "is empty; write a value, write null where you mean none, or remove the key"
        else:
            continue
        found.append(Mistake(file.line(location), spoken(location), what))
    return found


def _too_large(value: Any) -> bool:
    try:
        number = Decimal(str(value))
    except (InvalidOperation, ValueError):
        return False
    return number.is_finite() and abs(number) > _GREATEST
