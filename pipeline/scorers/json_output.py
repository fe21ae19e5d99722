"""The answer as JSON: it parses, it validates, its fields are there (spec section 3)."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator

from pipeline.model.run import Run
from pipeline.scorers.calls import was_truncated
from pipeline.scorers.check import Finding, Missing, ruled, unknown
from pipeline.scorers.json_values import ABSENT, at, parsed, unfenced
from pipeline.scorers.schema import Unusable, problem_with, violation

_EVIDENCE_LENGTH = 300


def _is_schema(schema: dict[str, Any]) -> dict[str, Any]:
    problem = problem_with(schema)
    if problem is not None:
        raise ValueError(f"this is no JSON Schema: {problem}")
    return schema


JsonSchema = Annotated[dict[str, Any], AfterValidator(_is_schema)]
"""A JSON Schema, of the draft that its ``$schema`` names, else 2020-12."""


def json_rule(*, fenced: bool) -> Callable[[Run, str], Finding]:
    """Return the rule that the answer is JSON."""

    def rule(run: Run, answer: str) -> Finding:
        value = _read(run, unfenced(answer) if fenced else answer)
        return value if isinstance(value, Finding) else ruled(holds=True)

    return rule


def schema_rule(schema: dict[str, Any]) -> Callable[[Run, str], Finding]:
    """Return the rule that the answer validates against a JSON Schema."""

    def rule(run: Run, answer: str) -> Finding:
        value = _read(run, unfenced(answer))
        if isinstance(value, Finding):
            return value
        try:
            why = violation(value, schema)
        except Unusable:
            return unknown(Missing.SCHEMA_UNUSABLE, "the declared schema")
        return ruled(holds=True) if why is None else ruled(holds=False, reason=why, evidence=answer[:_EVIDENCE_LENGTH])

    return rule


def fields_rule(names: Sequence[str]) -> Callable[[Run, str], Finding]:
    """Return the rule that the answer is a JSON object with these fields."""

    def rule(run: Run, answer: str) -> Finding:
        value = _read(run, unfenced(answer))
        if isinstance(value, Finding):
            return value
        missing = [name for name in names if at(value, name) in (ABSENT, None)]
        if not missing:
            return ruled(holds=True)
        return ruled(holds=False, reason=f"the answer has no {', '.join(missing)}", evidence=answer[:_EVIDENCE_LENGTH])

    return rule


def _read(run: Run, answer: str) -> Any:
    """Return the answer's value, or the finding that it has none."""
    try:
        return parsed(answer)
    except ValueError as error:
        if was_truncated(run):
            return unknown(Missing.ANSWER_NOT_CAPTURED, "texts of the run were cut, and what is left of the answer is not JSON")
        return ruled(holds=False, reason=f"the answer is not JSON: {error}", evidence=answer[:_EVIDENCE_LENGTH])
