"""Pairwise: which of two runs that answer one request is better, asked in both orders (scoring, section 6)."""

from enum import StrEnum

import msgspec


class Preference(StrEnum):
    """What one reply comes to, in terms of the two runs and not of the places where they were shown."""

    A = "a"
    B = "b"
    TIE = "tie"
    UNKNOWN = "unknown"
    """The judge says that it cannot tell."""
    GRADER_ERROR = "grader_error"
    """Nothing can be read from it, or its quote is not there."""

    @property
    def decided(self) -> bool:
        """Whether the judge told them apart, or told that they are alike."""
        return self in (Preference.A, Preference.B, Preference.TIE)

    @property
    def other(self) -> "Preference":
        """The same with the two runs exchanged."""
        return {Preference.A: Preference.B, Preference.B: Preference.A}.get(self, self)


class PairOutcome(StrEnum):
    """What the two orders come to together."""

    A = "a"
    """Better in both orders."""
    B = "b"
    TIE = "tie"
    """Alike in both orders."""
    CONFLICT = "conflict"
    """Both orders are decided, and differ: where a run was shown decided, and nobody won."""
    UNKNOWN = "unknown"
    GRADER_ERROR = "grader_error"

    @property
    def decided(self) -> bool:
        """Whether it counts."""
        return self in (PairOutcome.A, PairOutcome.B, PairOutcome.TIE)


class Place(StrEnum):
    """Where a run was shown."""

    FIRST = "first"
    SECOND = "second"


class BothOrders(msgspec.Struct, frozen=True):
    """A pair as it was judged twice."""

    forward: Preference
    """With A shown first."""
    swapped: Preference
    """With B shown first."""

    @property
    def alike(self) -> bool:
        """Whether both orders came to the same, a failure too: what is published as positional agreement."""
        return self.forward is self.swapped

    @property
    def outcome(self) -> PairOutcome:
        """A win counts only if it holds both ways, and so does a tie; where one order is not decided nothing is.

        An order that is Unknown leaves nothing that the other could have decided; so a pair is a grader error only without one.
        """
        both = (self.forward, self.swapped)
        if Preference.UNKNOWN in both:
            return PairOutcome.UNKNOWN
        if Preference.GRADER_ERROR in both:
            return PairOutcome.GRADER_ERROR
        return PairOutcome(self.forward) if self.alike else PairOutcome.CONFLICT

    @property
    def orders_agree(self) -> bool | None:
        """Whether two decided orders say the same; None where one of them is not decided."""
        return self.alike if self.forward.decided and self.swapped.decided else None

    @property
    def favoured(self) -> Place | None:
        """The place that a conflict went by: that of the run which was preferred where it stood there; None of anything else.

        A tie in one of the orders leaves the other one's place.
        """
        if self.outcome is not PairOutcome.CONFLICT:
            return None
        first = self.forward is Preference.A or self.swapped is Preference.B
        return Place.FIRST if first else Place.SECOND


class PairJudgment(msgspec.Struct, frozen=True):
    """A judge's word on two runs in one dimension. Everything in twos is of the order with A first, then of the one with B first.

    ``cost_usd`` is None where the model has no known price.
    """

    project: str
    dimension: str
    contract: str
    run_a: str
    run_b: str
    transcript_a: str
    """Hash of what was shown of A."""
    transcript_b: str
    orders: BothOrders
    outcome: PairOutcome
    orders_agree: bool | None
    reasons: tuple[str, str]
    quotes: tuple[str, str]
    model: str = ""
    """Empty where code decided without asking."""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    flags: tuple[str, ...] = ()
    judged_ns: int = 0
