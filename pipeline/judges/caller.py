"""Caller: makes the calls of a judge's model, each with its row before and after, and none that was answered before."""

import secrets
from collections.abc import Callable
from decimal import Decimal

import msgspec

from pipeline.errors import PermanentError, TemporaryError
from pipeline.judges.completion import REFUSAL
from pipeline.judges.contract import Ballot
from pipeline.judges.endpoint import Endpoint
from pipeline.judges.model import CUT, ChatRequest, Reply, UnansweredError
from pipeline.judges.purse import Hold, Purse
from pipeline.judges.question import Question
from pipeline.judges.settings import JudgeSettings
from pipeline.judges.tally import Grade, Why
from pipeline.judges.votes import Vote, VoteKey, VoteLog, VoteState
from pipeline.model.result import Outcome


def new_nonce() -> str:
    """Return a marker for one call that no run can contain: 128 random bits."""
    return secrets.token_hex(16)


class Call(msgspec.Struct, frozen=True):
    """A call that came to its end."""

    vote: Vote
    grade: Grade

    @property
    def cut(self) -> bool:
        """Whether the reply ended because it had used up its tokens."""
        return self.vote.finish_reason == CUT


class Caller:
    """Asks one endpoint within one purse, keeping each call in one log."""

    def __init__(
        self,
        endpoint: Endpoint,
        purse: Purse,
        votes: VoteLog,
        settings: JudgeSettings,
        now: Callable[[], int],
        nonces: Callable[[], str] = new_nonce,
    ) -> None:
        self._endpoint = endpoint
        self._purse = purse
        self._votes = votes
        self._settings = settings
        self._now = now
        self._nonces = nonces
        self._unkept: dict[VoteKey, Vote] = {}
        """What was answered and paid for while the log could not be written."""

    async def call(self, question: Question, ballot: Ballot, vote: int, attempt: int, widened: int = 1) -> Call:
        """Make one call, or take its answer from the log. The reply may be ``widened`` times as long as the settings say.

        Raises:
            TemporaryError: from the endpoint; where the call was made, after its failure was kept.
            OverBudgetError: there is no money left for it; it was not made.
        """
        key = question.key(vote, attempt)
        if key in self._unkept:
            await self._keep(self._unkept[key])
        before = await self._votes.recall(key)
        if before is not None and before.state.final:
            return Call(before, _grade(question, before))
        request = ChatRequest(
            messages=question.messages(self._nonces()),
            schema=question.schema,
            most_tokens=self._settings.max_output_tokens * widened,
            temperature=ballot.temperature,
            seed=ballot.seed,
        )
        async with self._purse.holding(key.project, key.run_id, request) as hold, self._endpoint.admitted(request):
            after = await self._made(question, _intent(key, question, before, hold, self._now()), request, hold)
        return Call(after, _grade(question, after))

    async def _made(self, question: Question, intent: Vote, request: ChatRequest, hold: Hold) -> Vote:
        await self._votes.intent(intent)
        hold.spent = hold.most  # until somebody knows better
        try:
            after = self._answered(question, intent, await self._endpoint.ask(request))
        except PermanentError as error:
            refused = Grade(Outcome.GRADER_ERROR, reason=f"{Why.REFUSED}: {error}")
            after = self._ended(intent, VoteState.REFUSED, refused.reason, refused.outcome)
        except UnansweredError as error:
            lost = msgspec.structs.replace(intent, lost=intent.lost + 1, lost_usd=intent.lost_usd + intent.reserved_usd)
            await self._votes.reply(self._ended(lost, VoteState.FAILED, str(error)))
            raise
        except TemporaryError as error:
            after = self._ended(intent, VoteState.FAILED, str(error))
            hold.spent = Decimal(0)
            await self._votes.reply(after)
            raise
        hold.spent = Decimal(str(after.charged_usd)) - Decimal(str(after.lost_usd))
        self._unkept[after.key] = after
        await self._keep(after)
        return after

    async def _keep(self, vote: Vote) -> None:
        await self._votes.reply(vote)
        del self._unkept[vote.key]

    def _ended(self, intent: Vote, state: VoteState, reason: str, outcome: str = "") -> Vote:
        """Return the row of a call that an endpoint did not answer: endpoints ask nothing for those."""
        return msgspec.structs.replace(intent, state=state, at_ns=self._now(), reason=reason, outcome=outcome, reserved_usd=0.0)

    def _answered(self, question: Question, intent: Vote, reply: Reply) -> Vote:
        cost = self._cost(reply)
        after = msgspec.structs.replace(
            intent,
            state=VoteState.REPLY,
            at_ns=self._now(),
            raw_reply=reply.text,
            finish_reason=reply.finish_reason,
            served_model=reply.served_model,
            fingerprint=reply.fingerprint,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            cost_usd=cost,
            reserved_usd=intent.reserved_usd if cost is None else 0.0,
        )
        grade = _grade(question, after)
        return msgspec.structs.replace(after, outcome=grade.outcome, score=grade.score, reason=grade.reason)

    def _cost(self, reply: Reply) -> float | None:
        price = self._settings.price
        if price is None or reply.input_tokens is None or reply.output_tokens is None:
            return None
        return float(price.cost(reply.input_tokens, reply.output_tokens))


def _intent(key: VoteKey, question: Question, before: Vote | None, hold: Hold, now: int) -> Vote:
    """Return the row that says that a call is about to be made. One that says so already is of a call whose answer was lost."""
    lost, lost_usd = (before.lost, before.lost_usd) if before is not None else (0, 0.0)
    if before is not None and before.state is VoteState.INTENT:
        lost, lost_usd = lost + 1, lost_usd + before.reserved_usd
    return Vote(
        key,
        VoteState.INTENT,
        now,
        model=question.contract.model,
        reserved_usd=float(hold.most),
        lost=lost,
        lost_usd=lost_usd,
    )


def _grade(question: Question, vote: Vote) -> Grade:
    if vote.state is VoteState.REFUSED:
        return Grade(Outcome.GRADER_ERROR, reason=vote.reason)
    grade = question.grade(vote.raw_reply)
    if not question.unparsed(vote.raw_reply):
        return grade
    why = {CUT: f"{Why.TRUNCATED}: ", REFUSAL: f"{Why.REFUSAL}: "}.get(vote.finish_reason, "")
    return msgspec.structs.replace(grade, reason=f"{why}{grade.reason}")
