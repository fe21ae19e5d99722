"""Pairs: what many pairs come to together: who won how often, how much the place decided, and how that agrees with people.

Pairs that are not decided are in no share; what they could have done to it stands beside it (judging, section 3, items 5 and 9).
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from pipeline.model.pairwise import BothOrders, PairOutcome, Place, Preference
from pipeline.stats.sign import sign_test
from pipeline.stats.wilson import interval


class Share(msgspec.Struct, frozen=True):
    """``count`` of ``of``, with Wilson's interval at 95 %."""

    count: int
    of: int
    share: float
    low: float
    high: float


class PlaceBias(msgspec.Struct, frozen=True):
    """How much it mattered where a run was shown. Of the pairs with both orders decided."""

    conflicts: Share | None
    """None where no pair is decided in both orders."""
    first: int
    """Conflicts that went by the first place."""
    second: int
    p: float | None
    """Of the exact sign test on these two; None without a conflict."""


class PairTally(msgspec.Struct, frozen=True):
    """Many pairs of the same two systems, A and B."""

    pairs: int
    a: int
    """Pairs that A won, in both orders."""
    b: int
    ties: int
    conflicts: int
    unknown: int
    grader_errors: int
    a_of_won: Share | None
    """Of the pairs that were won, those that A won; None where none was."""
    if_undecided_b: float | None
    """The same share, had B won every pair with a conflict, an Unknown or a grader error."""
    if_undecided_a: float | None
    place: PlaceBias


class PairAgreement(msgspec.Struct, frozen=True):
    """Pairs held against what people said of them."""

    pairs: int
    each_order: float
    """Share of single replies that say what people said, over both orders; one that is not decided says it never."""
    alike: float
    """Share of pairs whose two replies came to the same, two that could not be read too: the published positional agreement."""
    coverage: Share
    """Pairs that the rule of both orders decides."""
    accuracy: Share | None
    """Of these, those that say what people said; None where it decides none."""


def tally_pairs(pairs: Iterable[BothOrders]) -> PairTally:
    """Return what pairs come to together."""
    held = tuple(pairs)
    outcomes = Counter(pair.outcome for pair in held)
    a, b, conflicts = outcomes[PairOutcome.A], outcomes[PairOutcome.B], outcomes[PairOutcome.CONFLICT]
    undecided = conflicts + outcomes[PairOutcome.UNKNOWN] + outcomes[PairOutcome.GRADER_ERROR]
    could = a + b + undecided
    return PairTally(
        pairs=len(held),
        a=a,
        b=b,
        ties=outcomes[PairOutcome.TIE],
        conflicts=conflicts,
        unknown=outcomes[PairOutcome.UNKNOWN],
        grader_errors=outcomes[PairOutcome.GRADER_ERROR],
        a_of_won=_share(a, a + b),
        if_undecided_b=a / could if could else None,
        if_undecided_a=(a + undecided) / could if could else None,
        place=_place(held, conflicts),
    )


def held_against(pairs: Sequence[tuple[BothOrders, Preference]]) -> PairAgreement:
    """Return how pairs agree with what people said of each: A, B or a tie.

    Raises:
        ValueError: there is no pair, or people decided one of them not.
    """
    if not pairs or not all(said.decided for _, said in pairs):
        raise ValueError("agreement needs pairs of which people said a, b or tie")
    decided = [(pair.outcome, said) for pair, said in pairs if pair.outcome.decided]
    hits = sum((pair.forward is said) + (pair.swapped is said) for pair, said in pairs)
    return PairAgreement(
        pairs=len(pairs),
        each_order=hits / (2 * len(pairs)),
        alike=sum(pair.alike for pair, _ in pairs) / len(pairs),
        coverage=_of(len(decided), len(pairs)),
        accuracy=_share(sum(outcome == said.value for outcome, said in decided), len(decided)),
    )


def _place(pairs: Sequence[BothOrders], conflicts: int) -> PlaceBias:
    favoured = Counter(pair.favoured for pair in pairs)
    first, second = favoured[Place.FIRST], favoured[Place.SECOND]
    return PlaceBias(
        conflicts=_share(conflicts, sum(pair.orders_agree is not None for pair in pairs)),
        first=first,
        second=second,
        p=sign_test(first, second),
    )


def _share(count: int, of: int) -> Share | None:
    return _of(count, of) if of else None


def _of(count: int, of: int) -> Share:
    low, high = interval(count / of, of)
    return Share(count, of, count / of, low, high)
