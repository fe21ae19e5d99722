"""Two runs that answer one request and a dimension in, a PairJudgment out: asked in both orders, and a win counts only both ways."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

import msgspec

from pipeline.judges import injection
from pipeline.judges.caller import Caller, Made, new_nonce
from pipeline.judges.contract import Ballot
from pipeline.judges.endpoint import Endpoint
from pipeline.judges.family import family, related
from pipeline.judges.near_empty import near_empty
from pipeline.judges.pair_question import Candidate, PairGrade, PairQuestion, pair_contract
from pipeline.judges.pair_reply import Better
from pipeline.judges.poll import poll
from pipeline.judges.purse import Purse
from pipeline.judges.settings import JudgeSettings
from pipeline.judges.tally import NO_REFERENCE, Why
from pipeline.judges.votes import Vote, VoteLog
from pipeline.model.contract import Contract
from pipeline.model.pairwise import BothOrders, PairJudgment, Preference
from pipeline.model.rubric import MeasuredBy, ReferenceUse, Rubric

Polled: TypeAlias = Sequence[Made[PairGrade]]
_FORWARD = {
    Better.FIRST: Preference.A,
    Better.SECOND: Preference.B,
    Better.TIE: Preference.TIE,
    Better.UNKNOWN: Preference.UNKNOWN,
    Better.GRADER_ERROR: Preference.GRADER_ERROR,
}


class Compared(msgspec.Struct, frozen=True):
    """A pair with its calls: those with A first, then those with B first. None where code decided without asking."""

    judgment: PairJudgment
    calls: tuple[tuple[Vote, ...], tuple[Vote, ...]] = ((), ())


class PairJudge:
    """Compares runs by the dimensions of one rubric, one dimension a call and two calls a pair."""

    def __init__(
        self,
        rubric: Rubric,
        settings: JudgeSettings,
        endpoints: Mapping[str, Endpoint],
        purse: Purse,
        votes: VoteLog,
        now: Callable[[], int],
        nonces: Callable[[], str] = new_nonce,
    ) -> None:
        """Take the endpoints by the id of their model."""
        self._rubric = rubric
        self._ballot = Ballot(settings.model, None, 0.0)
        self._caller = Caller(endpoints, purse, votes, now, nonces)
        self._now = now
        self.contracts: dict[str, Contract] = {
            one.name: pair_contract(rubric, one.name, settings)
            for one in rubric.dimensions
            if one.measured_by is MeasuredBy.JUDGE
        }
        """By dimension: what each is compared under."""

    async def compare(self, project: str, a: Candidate, b: Candidate, dimension: str) -> Compared:
        """Compare two runs in one dimension. That they answer one request is the caller's to know.

        Raises:
            TemporaryError: from the endpoint; asking again later buys no call twice that was answered.
            OverBudgetError: there is no money left for one of the calls.
        """
        told = self._by_code(a, b, dimension)
        if told is not None:
            said, reason = told
            return self._compared(project, a, b, dimension, BothOrders(said, said), (reason, reason), ((), ()))
        forward = await self._asked(project, a, b, dimension)
        swapped = await self._asked(project, b, a, dimension)
        grades = (forward[-1].grade, swapped[-1].grade)
        orders = BothOrders(_FORWARD[grades[0].outcome], _FORWARD[grades[1].outcome].other)
        reasons = (grades[0].reason, grades[1].reason)
        return self._compared(project, a, b, dimension, orders, reasons, (forward, swapped))

    def _by_code(self, a: Candidate, b: Candidate, dimension: str) -> tuple[Preference, str] | None:
        """Return what needs no model: nothing to hold the replies against, or a reply that says nothing."""
        required = self._rubric.dimension(dimension).reference is ReferenceUse.REQUIRED
        if required and {a.document.reference, b.document.reference} == {msgspec.UNSET}:
            return Preference.UNKNOWN, NO_REFERENCE.reason
        says_nothing = (near_empty(a.document.answer), near_empty(b.document.answer))
        if not any(says_nothing):
            return None
        better = {(True, False): Preference.B, (False, True): Preference.A}.get(says_nothing, Preference.TIE)
        whose = "neither reply says" if all(says_nothing) else "one of the replies does not say"
        return better, f"{Why.NEAR_EMPTY}: {whose} anything; decided without asking a model"

    async def _asked(self, project: str, first: Candidate, second: Candidate, dimension: str) -> Polled:
        one = self._rubric.dimension(dimension)
        question = PairQuestion(project, self._rubric, one, self.contracts[dimension], first, second)
        return await poll(self._caller, question, self._ballot, 0)

    def _compared(
        self,
        project: str,
        a: Candidate,
        b: Candidate,
        dimension: str,
        orders: BothOrders,
        reasons: tuple[str, str],
        polled: tuple[Polled, Polled],
    ) -> Compared:
        calls = [call for each in polled for call in each]
        forward, swapped = polled
        judgment = PairJudgment(
            project=project,
            dimension=dimension,
            contract=self.contracts[dimension].hash,
            run_a=a.run_id,
            run_b=b.run_id,
            transcript_a=a.transcript_hash,
            transcript_b=b.transcript_hash,
            orders=orders,
            outcome=orders.outcome,
            orders_agree=orders.orders_agree,
            reasons=reasons,
            quotes=(_quote(forward), _quote(swapped)),
            model=self._ballot.model if calls else "",
            calls=len(calls),
            input_tokens=sum(call.vote.input_tokens or 0 for call in calls),
            output_tokens=sum(call.vote.output_tokens or 0 for call in calls),
            cost_usd=_cost(call.vote for call in calls),
            flags=tuple(_flags(self._ballot.model, a, b, polled)),
            judged_ns=self._now(),
        )
        return Compared(judgment, (tuple(call.vote for call in forward), tuple(call.vote for call in swapped)))


def _quote(polled: Polled) -> str:
    return polled[-1].grade.quote if polled else ""


def _cost(votes: Iterable[Vote]) -> float | None:
    costs = [vote.cost_usd for vote in votes]
    return None if None in costs else float(sum(Decimal(str(cost)) for cost in costs))


def _flags(judge: str, a: Candidate, b: Candidate, polled: tuple[Polled, Polled]) -> Iterable[str]:
    calls = [call.vote for each in polled for call in each]
    if any(len(each) > 1 for each in polled):
        yield "retried"
    if any(vote.lost for vote in calls):
        yield "asked_again"
    if any(vote.input_tokens is None or vote.output_tokens is None for vote in calls):
        yield "usage_unknown"
    yield from (f"judge_family:{name}" for name in filter(None, [family(judge)]))
    for whose, candidate in (("a", a), ("b", b)):
        yield from (f"{whose}_family:{name}" for name in sorted({family(model) for model in candidate.models} - {""}))
        # A judge is lenient with its own: where it is of one side's family only, that side has an advantage.
        if any(related(model, judge) for model in candidate.models):
            yield f"same_family_as_{whose}"
        if injection.suspected(candidate.document):
            yield f"injection_suspected_in_{whose}"
