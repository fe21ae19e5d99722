"""Caller: makes the calls of a judge's model, each with its row before and after, and none that was answered before."""

import secrets
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Generic, TypeAlias

import msgspec

from pipeline.errors import PermanentError, TemporaryError
from pipeline.judges.asked import Asked, G
from pipeline.judges.completion import REFUSAL
from pipeline.judges.contract import Ballot
from pipeline.judges.endpoint import Endpoint
from pipeline.judges.model import CUT, ChatRequest, Reply, UnansweredError
from pipeline.judges.purse import Hold, Purse
from pipeline.judges.settings import Price
from pipeline.judges.tally import Grade, Why
from pipeline.judges.votes import Vote, VoteKey, VoteLog, VoteState


def new_nonce() -> str:
    """Return a marker for one call that no run can contain: 128 random bits."""
    return secrets.token_hex(16)


class Made(msgspec.Struct, Generic[G], frozen=True):
    """A call that came to its end."""

    vote: Vote
    grade: G

    @property
    def cut(self) -> bool:
        """Whether the reply ended because it had used up its tokens."""
        return self.vote.finish_reason == CUT


Call: TypeAlias = Made[Grade]
"""A call about one run."""


class Caller:
    """Asks the endpoints of one or several models within one purse, keeping each call in one log."""

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        purse: Purse,
        votes: VoteLog,
        now: Callable[[], int],
        nonces: Callable[[], str] = new_nonce,
    ) -> None:
        """Take the endpoints by the id of their model."""
        self._endpoints = endpoints
        self._purse = purse
        self._votes = votes
        self._now = now
        self._nonces = nonces
        self._unkept: dict[VoteKey, Vote] = {}
        """What was answered and paid for while the log could not be written."""

    async def call(self, question: Asked[G], ballot: Ballot, vote: int, attempt: int, widened: int = 1) -> Made[G]:
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
            return Made(before, _grade(question, before))
        endpoint = self._endpoints[ballot.model]
        request = ChatRequest(
            messages=question.messages(self._nonces()),
            schema=question.schema,
            most_tokens=endpoint.settings.max_output_tokens * widened,
            temperature=ballot.temperature,
            seed=ballot.seed,
        )
        most = _most(endpoint.settings.price, request)
        async with self._purse.holding(key.project, key.run_id, most) as hold, endpoint.admitted(request):
            after = await self._made(endpoint, question, _intent(key, ballot, before, hold, self._now()), request, hold)
        return Made(after, _grade(question, after))

    async def _made(self, endpoint: Endpoint, question: Asked[Any], intent: Vote, request: ChatRequest, hold: Hold) -> Vote:
        await self._votes.intent(intent)
        hold.spent = hold.most  # until somebody knows better
        try:
            reply = await endpoint.ask(request)
            after = self._answered(question, intent, reply, _cost(endpoint.settings.price, reply))
        except PermanentError as error:
            refused = question.broken(f"{Why.REFUSED}: {error}")
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

    def _answered(self, question: Asked[Any], intent: Vote, reply: Reply, cost: float | None) -> Vote:
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


def _most(price: Price | None, request: ChatRequest) -> Decimal:
    """Return the most that a call can cost; nothing can be told, and so nothing is set aside, where its price is unknown."""
    return Decimal(0) if price is None else price.cost(request.prompt_tokens, request.most_tokens)


def _cost(price: Price | None, reply: Reply) -> float | None:
    if price is None or reply.input_tokens is None or reply.output_tokens is None:
        return None
    return float(price.cost(reply.input_tokens, reply.output_tokens))


def _intent(key: VoteKey, ballot: Ballot, before: Vote | None, hold: Hold, now: int) -> Vote:
    """Return the row that says that a call is about to be made. One that says so already is of a call whose answer was lost."""
    lost, lost_usd = (before.lost, before.lost_usd) if before is not None else (0, 0.0)
    if before is not None and before.state is VoteState.INTENT:
        lost, lost_usd = lost + 1, lost_usd + before.reserved_usd
    return Vote(
        key,
        VoteState.INTENT,
        now,
        model=ballot.model,
        reserved_usd=float(hold.most),
        lost=lost,
        lost_usd=lost_usd,
    )


def _grade(question: Asked[G], vote: Vote) -> G:
    if vote.state is VoteState.REFUSED:
        return question.broken(vote.reason)
    grade = question.grade(vote.raw_reply)
    if not question.unparsed(vote.raw_reply):
        return grade
    why = {CUT: f"{Why.TRUNCATED}: ", REFUSAL: f"{Why.REFUSAL}: "}.get(vote.finish_reason, "")
    return question.broken(f"{why}{grade.reason}")
