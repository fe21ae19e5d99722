"""Poll: one vote on a question, as the calls that it takes."""

from collections.abc import Sequence
from typing import Final

from pipeline.judges.asked import Asked, G
from pipeline.judges.caller import Caller, Made
from pipeline.judges.contract import Ballot
from pipeline.judges.purse import OverBudgetError
from pipeline.judges.votes import VoteState

ATTEMPTS: Final = 2
"""A reply without a verdict that can be read is asked for once more; a verdict never is (spec section 6)."""
WIDER: Final = 4
"""How many times as many tokens the reply may have that is asked for after one that was cut (reliability R131)."""


async def poll(caller: Caller, question: Asked[G], ballot: Ballot, number: int) -> Sequence[Made[G]]:
    """Return the calls that one vote took; the last one counts.

    Raises:
        TemporaryError: from the endpoint.
        OverBudgetError: there is no money for the first call.
    """
    calls: list[Made[G]] = []
    for attempt in range(ATTEMPTS):
        widened = WIDER if calls and calls[-1].cut else 1
        try:
            calls.append(await caller.call(question, ballot, number, attempt, widened))
        except OverBudgetError:
            if not calls:
                raise
            break  # there is no money for another try: the reply that could not be read is what it came to
        if calls[-1].vote.state is VoteState.REFUSED or not question.unparsed(calls[-1].vote.raw_reply):
            break
    return calls
