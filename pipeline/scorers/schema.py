"""JSON Schemas: compiled once, and never a reason to break or to stall, for some come with the run.

Their patterns are searched for in linear time. A schema with one that RE2 does not read, such as a look-ahead, says nothing of a value
that the pattern is about.
"""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import msgspec
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing.jsonschema import EMPTY_REGISTRY

from pipeline.patterns import compiled
from pipeline.scorers.calls import number

_SCHEMAS_KEPT: Final = 512
_REASON_LENGTH: Final = 200
_Keyword = Callable[[Validator, Any, Any, Any], Iterator[ValidationError]]


class Unusable(Exception):  # noqa: N818 - said of the schema; who asks decides what it means
    """This is no JSON Schema, or one that the validator cannot work with."""


def violation(value: Any, schema: Any) -> str | None:
    """Return where and how a value breaks the schema, None where it validates.

    Raises:
        Unusable: the schema is none.
    """
    validator = _compiled(msgspec.json.encode(schema, order="sorted"))
    if validator is None:
        raise Unusable
    try:
        error = next(validator.iter_errors(value), None)
    except Exception as error:  # what a schema makes jsonschema raise has no end
        raise Unusable from error
    return None if error is None else f"{error.json_path}: {error.message}"[:_REASON_LENGTH]


def problem_with(schema: Any) -> str | None:
    """Return what keeps a value from being a JSON Schema, None where it is one."""
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except Exception as error:  # noqa: BLE001 - as above
        return str(error).splitlines()[0][:_REASON_LENGTH]
    return None


@lru_cache(maxsize=_SCHEMAS_KEPT)
def _compiled(schema: bytes) -> Validator | None:
    """Compile a schema once; None where it is not a schema. A reference to elsewhere is never fetched."""
    value = msgspec.json.decode(schema)
    # How jsonschema finds what is left unevaluated cannot be replaced, and tries these patterns in its own way.
    stalls = b'"unevaluatedProperties"' in schema and b'"patternProperties"' in schema
    if stalls or problem_with(value) is not None:
        return None
    kind = validator_for(value, default=Draft202012Validator)
    ours: dict[str, _Keyword] = {
        "multipleOf": _multiple_of,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _beside_patterns(kind.VALIDATORS["additionalProperties"]),
    }
    exact: type[Validator] = extend(kind, ours)  # type: ignore[no-untyped-call]
    return exact(value, registry=EMPTY_REGISTRY)


def _is_found(pattern: str, text: str) -> bool:
    return compiled(pattern).matches(text.encode(errors="replace"))


def _pattern(_: Validator, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _is_found(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, schemas: Mapping[str, Any], value: Any, _: Any) -> Iterator[ValidationError]:
    properties = value.items() if isinstance(value, dict) else ()
    for pattern, schema in schemas.items():
        for name, one in properties:
            if _is_found(pattern, name):
                yield from validator.descend(one, schema, path=name)


def _beside_patterns(additional: _Keyword) -> _Keyword:
    """Return the keyword ``additionalProperties``, given no property that a pattern speaks for, and no pattern to try."""

    def keyword(validator: Validator, allowed: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        patterns = schema.get("patternProperties", ())
        if patterns and isinstance(value, dict):
            value = {name: one for name, one in value.items() if not any(_is_found(pattern, name) for pattern in patterns)}
            schema = {name: one for name, one in schema.items() if name != "patternProperties"}
        return additional(validator, allowed, value, schema)

    return keyword


def _multiple_of(_: Validator, step: Any, value: Any, __: Any) -> Iterator[ValidationError]:
    """Check ``multipleOf`` in decimals: in floats 0.07 is no multiple of 0.01 (jsonschema divides them as they come)."""
    exact = None if isinstance(value, str) else number(value)
    if exact is not None and exact % Decimal(str(step)) != 0:
        yield ValidationError(f"{value} is not a multiple of {step}")
