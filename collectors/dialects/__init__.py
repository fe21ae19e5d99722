"""Dialects: a stored span in, a step out. Each span is read by itself, since one trace mixes dialects (dialects reference, section 0)."""

from typing import Final

import msgspec

from collectors.dialects import genai, openinference, openllmetry
from collectors.dialects.bodies import restored
from collectors.dialects.dialect import Dialect
from collectors.dialects.evaluations import evaluations
from collectors.dialects.ignored import is_ignored
from collectors.dialects.steps import UNREADABLE, UNRECOGNISED, step_of
from pipeline.model.span import Span
from pipeline.model.step import Step, StepKind

DIALECTS: Final[tuple[Dialect, ...]] = (openinference.DIALECT, openllmetry.DIALECT, genai.DIALECT)
"""The first that matches reads the span: those that are surest of their own come first."""


def read(span: Span) -> Step:
    """Return the span as its dialect understands it. What no dialect knows is kept as OTHER, flagged ``unrecognised``.

    A step of kind OTHER with a ``tool`` is a call that a model asked for and that is no tool call of the run: a hand-over, a final answer.
    """
    if is_ignored(span):
        return step_of(span, "", StepKind.IGNORED)
    if not span.events:  # as most are
        return _read(span)
    step, found = _read(restored(span)), evaluations(span)
    return msgspec.structs.replace(step, feedback=found) if found else step


def _read(span: Span) -> Step:
    for dialect in DIALECTS:
        if dialect.matches(span):
            return _read_by(dialect, span)
    return step_of(span, "", StepKind.OTHER, flags=(UNRECOGNISED,))


def _read_by(dialect: Dialect, span: Span) -> Step:
    try:
        return dialect.read(span)
    except RecursionError:  # nested too deep to be walked: hostile, and kept all the same
        return step_of(span, dialect.name, StepKind.OTHER, flags=(UNREADABLE,))
