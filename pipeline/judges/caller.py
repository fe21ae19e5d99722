"""Caller: makes the calls of a judge's model, each with its row before and after, and none that was answered before."""

import secrets
from collections.abc import Callable

import msgspec

from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.judges.contract import Ballot
from pipeline.judges.model import JudgeModel, Reply
from pipeline.judges.question import Question
from pipeline.judges.settings import Price
from pipeline.judges.tally import Grade, Why
from pipeline.judges.votes import Vote, VoteLog, VoteState
from pipeline.model.result import Outcome


def new_nonce() -> str:
    """Return a marker for one call that no run can contain: 128 random bits."""
    return secrets.token_hex(16)


class Call(msgspec.Struct, frozen=True):
    """A call that came to its end. ``asked_again`` where an earlier one was in flight when a process ended, and may have been paid."""

    vote: Vote
    grade: Grade
    asked_again: bool = False


class Caller:
    """Asks one model, keeping each call in one log."""

    def __init__(
        self,
        model: JudgeModel,
        votes: VoteLog,
        now: Callable[[], int],
        price: Price | None,
        nonces: Callable[[], str] = new_nonce,
    ) -> None:
        self._model = model
        self._votes = votes
        self._now = now
        self._price = price
        self._nonces = nonces

    async def call(self, question: Question, ballot: Ballot, vote: int, attempt: int) -> Call:
        """Make one call, or take its answer from the log.

        Raises:
            TemporaryError: from the model, after the failure was kept.
            ConfigurationError: likewise.
        """
        key = question.key(vote, attempt)
        before = await self._votes.recall(key)
        if before is not None and before.state.final:
            return Call(before, _grade(question, before))
        intent = Vote(key, VoteState.INTENT, self._now(), model=question.contract.model)
        await self._votes.intent(intent)
        try:
            reply = await self._model.ask(question.messages(self._nonces()), seed=ballot.seed, temperature=ballot.temperature)
            after = self._answered(question, intent, reply)
        except PermanentError as error:
            refused = Grade(Outcome.GRADER_ERROR, reason=f"{Why.REFUSED}: {error}")
            after = msgspec.structs.replace(
                intent, state=VoteState.REFUSED, at_ns=self._now(), outcome=refused.outcome, reason=refused.reason
            )
        except (TemporaryError, ConfigurationError) as error:
            await self._votes.reply(msgspec.structs.replace(intent, state=VoteState.FAILED, at_ns=self._now(), reason=str(error)))
            raise
        await self._votes.reply(after)
        return Call(after, _grade(question, after), asked_again=before is not None and before.state is VoteState.INTENT)

    def _answered(self, question: Question, intent: Vote, reply: Reply) -> Vote:
        grade = question.grade(reply.text)
        return msgspec.structs.replace(
            intent,
            state=VoteState.REPLY,
            at_ns=self._now(),
            raw_reply=reply.text,
            outcome=grade.outcome,
            score=grade.score,
            reason=grade.reason,
            served_model=reply.served_model,
            fingerprint=reply.fingerprint,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            cost_usd=self._cost(reply),
        )

    def _cost(self, reply: Reply) -> float | None:
        if self._price is None or reply.input_tokens is None or reply.output_tokens is None:
            return None
        return float(self._price.cost(reply.input_tokens, reply.output_tokens))


def _grade(question: Question, vote: Vote) -> Grade:
    if vote.state is VoteState.REFUSED:
        return Grade(Outcome.GRADER_ERROR, reason=vote.reason)
    return question.grade(vote.raw_reply)
