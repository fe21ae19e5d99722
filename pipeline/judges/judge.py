"""A request to judge and one of its dimensions in, a Judgment out: every failure is an outcome, none is a number."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec

from pipeline.errors import ConfigurationError
from pipeline.judges import injection
from pipeline.judges.caller import Call, Caller, new_nonce
from pipeline.judges.contract import ballots, judge_contracts
from pipeline.judges.contradiction import contradicts
from pipeline.judges.endpoint import Endpoint
from pipeline.judges.family import family, related
from pipeline.judges.near_empty import near_empty
from pipeline.judges.poll import poll
from pipeline.judges.purse import OverBudgetError, Purse
from pipeline.judges.question import Question
from pipeline.judges.settings import JudgeSettings
from pipeline.judges.tally import NO_REFERENCE, Grade, Why, scored, tally
from pipeline.judges.votes import VoteLog
from pipeline.model.contract import Contract
from pipeline.model.result import BETWEEN_MODELS, JudgeRequest, Judgment, Outcome, Unresolved
from pipeline.model.rubric import Rubric


def as_it_is(text: str) -> str:
    """Take the place of a redactor where nothing is redacted."""
    return text


class Judge:
    """Judges the dimensions of one rubric, one dimension a call, by the models that a contract names; keeps nothing between judgments."""

    def __init__(
        self,
        rubric: Rubric,
        settings: JudgeSettings,
        endpoints: Mapping[str, Endpoint],
        purse: Purse,
        votes: VoteLog,
        now: Callable[[], int],
        nonces: Callable[[], str] = new_nonce,
        redact: Callable[[str], str] = as_it_is,
    ) -> None:
        """Take the endpoints by the id of their model.

        ``redact`` goes over a transcript before a prompt is made of it: what is stored was redacted by the rules of its own day.
        """
        self._rubric = rubric
        self._caller = Caller(endpoints, purse, votes, now, nonces)
        self._now = now
        self._redact = redact
        self._opted_out = settings.opted_out
        known = judge_contracts(rubric, settings)
        self._known = {one.hash: one for one in known}
        self.contracts: dict[str, Contract] = {}
        """By dimension: what each is judged under where no pairing has another model."""
        for one in known:
            self.contracts.setdefault(one.dimension, one)

    async def judge(self, request: JudgeRequest, dimension: str, contract: str) -> Judgment:
        """Judge one dimension of a request under the contract of that hash.

        A dimension for which no money is left is unresolved, whatever of it was bought already.

        Raises:
            TemporaryError: from the endpoint; asking again later buys no call twice that was answered.
            ConfigurationError: this judge would grade under another contract, or may not see the project's runs.
        """
        if request.project in self._opted_out:
            raise ConfigurationError(f"{request.project} is opted out of being judged: nothing of it is shown to a judge")
        own = self._known.get(contract)
        if own is None or own.dimension != dimension:
            known = " or ".join(one.hash for one in self._known.values() if one.dimension == dimension)
            raise ConfigurationError(
                f"{dimension} is asked for under contract {contract}, and this judge grades it under {known or 'none'}: "
                "start the workers and the judge with the same configuration"
            )
        shown = msgspec.structs.replace(request, transcript=self._redact(request.transcript))
        question = Question.of(shown, self._rubric, own)
        if question.lacks_reference:
            return self._judgment(question, NO_REFERENCE, ())
        if near_empty(question.document.answer):
            reason = f"{Why.NEAR_EMPTY}: the reply says nothing; decided without asking a model"
            return self._judgment(question, scored(self._rubric, question.dimension, self._rubric.scale_low, reason, ""), ())
        polled: list[Sequence[Call]] = []
        try:
            for number, ballot in enumerate(ballots(own)):
                polled.append(await poll(self._caller, question, ballot, number))
        except OverBudgetError as error:
            capped = self._judgment(question, Grade(Outcome.INSUFFICIENT_EVIDENCE, reason=str(error)), polled)
            return msgspec.structs.replace(capped, unresolved=Unresolved.BUDGET)
        return self._judgment(question, tally(self._rubric, question.dimension, [calls[-1].grade for calls in polled]), polled)

    def _judgment(self, question: Question, grade: Grade, polled: Sequence[Sequence[Call]]) -> Judgment:
        request = question.request
        calls = [call for vote in polled for call in vote]
        retried = len(calls) > len(polled)
        return Judgment(
            project=request.project,
            trace_id=request.trace_id,
            run_id=request.run_id,
            run_version=request.run_version,
            transcript_hash=request.transcript_hash,
            contract=question.contract.hash,
            dimension=question.dimension.name,
            outcome=grade.outcome,
            score=grade.score,
            unresolved=grade.unresolved,
            reason=grade.reason,
            quote=grade.quote,
            model=BETWEEN_MODELS.join(dict.fromkeys(call.vote.model for call in calls)),
            votes=len(polled),
            input_tokens=sum(call.vote.input_tokens or 0 for call in calls),
            output_tokens=sum(call.vote.output_tokens or 0 for call in calls),
            cost_usd=_cost(calls),
            flags=(*_call_flags(calls, retried=retried), *_run_flags(question)),
            judged_ns=self._now(),
        )


def _cost(calls: Iterable[Call]) -> float | None:
    total = Decimal(0)
    for call in calls:
        if call.vote.cost_usd is None:
            return None
        total += Decimal(str(call.vote.cost_usd))
    return float(total)


def _call_flags(calls: Sequence[Call], *, retried: bool) -> Iterable[str]:
    if retried:
        yield "retried"
    if any(call.vote.lost for call in calls):
        yield "asked_again"
    if any(contradicts(call.vote.raw_reply, call.grade.outcome) for call in calls):
        yield "contradicts_itself"
    if any(call.vote.input_tokens is None or call.vote.output_tokens is None for call in calls):
        yield "usage_unknown"


def _run_flags(question: Question) -> Iterable[str]:
    judges, agents = question.contract.judges, question.request.models
    for whose, models in (("agent", agents), ("judge", judges)):
        yield from (f"{whose}_family:{name}" for name in sorted({family(model) for model in models} - {""}))
    if any(related(agent, judge) for agent in agents for judge in judges):
        yield "same_family"
    if injection.suspected(question.document):
        yield "injection_suspected"
