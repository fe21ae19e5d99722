"""tool_call_accuracy: the right tools with the right arguments, in one of five orders (spec section 4.1).

A call that failed can be the right one, and is never one too many: what the tool could not do is no fault of the choice, and a retry none
either. A call that was asked for and not executed does not count, unless the run shows no execution at all.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from pipeline.model.reference import Order, Reference, ReferenceCall
from pipeline.model.run import Run
from pipeline.model.step import ToolCall
from pipeline.scorers.calls import calls_unseen, describe, failed, has_arguments, shows_execution, took_place
from pipeline.scorers.check import Finding, Missing, ruled, unknown
from pipeline.scorers.reference.arguments import is_call

TOOL_CALL_ACCURACY: Final = "tool_call_accuracy"
_ORDERED: Final = frozenset({Order.EXACT, Order.IN_ORDER})
_COMPLETE: Final = frozenset({Order.EXACT, Order.IN_ORDER, Order.ANY, Order.SUPERSET})
"""Orders in which no call of the reference may be left out."""
_ALONE: Final = frozenset({Order.EXACT, Order.ANY, Order.SUBSET})
"""Orders in which no other call may be made."""


def tool_call_accuracy(run: Run, reference: Reference) -> Finding:
    """Say whether the right calls were made: 1 or 0, undecided where arguments that would decide were not captured."""
    if calls_unseen(run):
        return unknown(Missing.CALLS_NOT_CAPTURED, "the models' content was not captured")
    seen = shows_execution(run.tool_calls)
    calls = [call for call in run.tool_calls if took_place(call) or not seen]
    refused = next((call for call in calls if call.name in reference.forbidden), None)
    if refused is not None:
        return ruled(holds=False, reason=f"{refused.name} must not be called", evidence=describe(refused))
    surely = _fault(calls, reference, doubt=False)
    if surely is None:
        return ruled(holds=True)
    perhaps = surely if all(map(has_arguments, calls)) else _fault(calls, reference, doubt=True)
    if perhaps is None:
        return unknown(Missing.ARGUMENTS_NOT_CAPTURED, surely.reason)
    return ruled(holds=False, reason=perhaps.reason, evidence=perhaps.evidence)


class _Fault(msgspec.Struct, frozen=True):
    reason: str
    evidence: str = ""


def _fault(calls: Sequence[ToolCall], reference: Reference, *, doubt: bool) -> _Fault | None:
    """Return what is wrong, None if nothing is; ``doubt`` is what a call without arguments counts as."""
    fits = [[_fits(call, wanted, doubt=doubt) for wanted in reference.calls] for call in calls]
    order = reference.order
    pairs = _in_sequence(fits, reference, calls) if order in _ORDERED else _anyhow(fits, reference, calls)
    left_out = next((one for index, one in enumerate(reference.calls) if not one.optional and index not in pairs), None)
    if order in _COMPLETE and left_out is not None:
        return _Fault(f"no call of {left_out.tool} as it should be")
    taken = set(pairs.values())
    extra = next((call for index, call in enumerate(calls) if index not in taken and not failed(call)), None)
    if order in _ALONE and extra is not None:
        return _Fault(f"a call of {extra.name} too many, or not as it should be", describe(extra))
    return None


def _fits(call: ToolCall, wanted: ReferenceCall, *, doubt: bool) -> bool:
    answer = is_call(call, wanted)
    return doubt if isinstance(answer, Missing) else answer


def _anyhow(fits: Sequence[Sequence[bool]], reference: Reference, calls: Sequence[ToolCall]) -> dict[int, int]:
    """Return pairs, reference index → call index, that leave out as few required calls and as few successes as can be.

    Augmenting paths leave matched whatever was matched, on both sides; so the order of the three rounds says what matters most.
    """
    pairs: dict[int, int] = {}
    taken: dict[int, int] = {}

    def place(index: int, among: Sequence[int], tried: set[int]) -> bool:
        for call in among:
            if fits[call][index] and call not in tried:
                tried.add(call)
                if call not in taken or place(taken[call], among, tried):
                    pairs[index], taken[call] = call, index
                    return True
        return False

    required = [index for index, one in enumerate(reference.calls) if not one.optional]
    optional = [index for index, one in enumerate(reference.calls) if one.optional]
    succeeded = [index for index, call in enumerate(calls) if not failed(call)]
    for indices, among in ((required, succeeded), (optional, succeeded), (required, range(len(calls)))):
        for index in indices:
            if index not in pairs:
                place(index, among, set())
    return pairs


def _in_sequence(fits: Sequence[Sequence[bool]], reference: Reference, calls: Sequence[ToolCall]) -> dict[int, int]:
    """Return the pairs of the best alignment that keeps both orders: most required calls, then fewest calls left over."""
    wanted = reference.calls
    best: list[list[tuple[int, int]]] = [[(0, 0)] * (len(calls) + 1) for _ in range(len(wanted) + 1)]
    for index in range(len(wanted) - 1, -1, -1):
        for call in range(len(calls) - 1, -1, -1):
            options = [best[index + 1][call], best[index][call + 1]]
            if fits[call][index]:
                required, used = best[index + 1][call + 1]
                options.append((required + (not wanted[index].optional), used + (not failed(calls[call]))))
            best[index][call] = max(options)
    return _traced(best)


def _traced(best: Sequence[Sequence[tuple[int, int]]]) -> dict[int, int]:
    pairs: dict[int, int] = {}
    index = call = 0
    while index < len(best) - 1 and call < len(best[0]) - 1:
        here = best[index][call]
        if here == best[index][call + 1]:
            call += 1
        elif here == best[index + 1][call]:
            index += 1
        else:
            pairs[index] = call
            index, call = index + 1, call + 1
    return pairs
