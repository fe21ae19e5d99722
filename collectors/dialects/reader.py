"""Reading: a stored span in, a step out, whatever dialect it is in."""

from collections.abc import Iterable
from typing import Final

import msgspec

from collectors.dialects.annotations import annotations
from collectors.dialects.bodies import restored
from collectors.dialects.detection import Detected, Detector
from collectors.dialects.dialect import Dialect
from collectors.dialects.evaluations import evaluations
from collectors.dialects.ignored import ignored_because
from collectors.dialects.steps import UNREADABLE, UNRECOGNISED, step_of
from pipeline.model.span import Span
from pipeline.model.step import Step, StepKind


class Reader:
    """Reads each span by itself, since one trace mixes dialects (dialects reference, section 0)."""

    def __init__(self, dialects: Iterable[Dialect]) -> None:
        self.dialects: Final = tuple(dialects)
        self._detect: Final = Detector(self.dialects).detect

    def detect(self, span: Span) -> Detected | None:
        """Return whose the span is: by what it says itself, else by the content that was taken off it and logged; None if nobody's."""
        return self._detect(span) or (self._detect(restored(span)) if span.events else None)

    def read(self, span: Span) -> Step:
        """Return the span as its dialect understands it. What no dialect knows is kept as OTHER, flagged ``unrecognised``.

        A step of kind OTHER with a ``tool`` is a call that a model asked for and that is no tool call of the run: a hand-over, a final answer.
        """
        if ignored_because(span):
            return step_of(span, "", StepKind.IGNORED)
        found = annotations(span)
        if not span.events and not found:  # as most are
            return self._read(span, self._detect(span))
        step, found = self._read(restored(span), self.detect(span)), (*evaluations(span), *found)
        return msgspec.structs.replace(step, feedback=(*step.feedback, *found)) if found else step

    def _read(self, span: Span, detected: Detected | None) -> Step:
        if detected is None:
            return step_of(span, "", StepKind.OTHER, flags=(UNRECOGNISED,))
        dialect = detected.dialect
        try:
            return dialect.read(span)
        except RecursionError:  # nested too deep to be walked: hostile, and kept all the same
            return step_of(span, dialect.name, StepKind.OTHER, flags=(UNREADABLE,))
