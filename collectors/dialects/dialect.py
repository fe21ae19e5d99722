"""What a dialect is: one way in which instrumentations write down what an agent did."""

from typing import Protocol

from pipeline.model.span import Span
from pipeline.model.step import Step


class Dialect(Protocol):
    """Reads the spans that it matches. Pure: the same span always gives the same step."""

    @property
    def name(self) -> str:
        """The name that steps and runs carry."""

    def matches(self, span: Span) -> bool:
        """Whether the span is written in this dialect."""

    def read(self, span: Span) -> Step:
        """Return the span as a step."""
