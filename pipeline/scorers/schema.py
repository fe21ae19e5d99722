"""JSON Schemas: compiled once, and never a reason to break, for some come with the run."""

from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import msgspec
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing.jsonschema import EMPTY_REGISTRY

from pipeline.scorers.calls import number

_SCHEMAS_KEPT: Final = 512
_REASON_LENGTH: Final = 200


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
    if problem_with(value) is not None:
        return None
    kind = validator_for(value, default=Draft202012Validator)
    exact: type[Validator] = extend(kind, {"multipleOf": _multiple_of})  # type: ignore[no-untyped-call]
    return exact(value, registry=EMPTY_REGISTRY)


def _multiple_of(_: Validator, step: Any, value: Any, __: Any) -> Iterator[ValidationError]:
    """Check ``multipleOf`` in decimals: in floats 0.07 is no multiple of 0.01 (jsonschema divides them as they come)."""
    exact = None if isinstance(value, str) else number(value)
    if exact is not None and exact % Decimal(str(step)) != 0:
        yield ValidationError(f"{value} is not a multiple of {step}")
