"""Trial: one dimension of one run judged in the open. The same judge as in production, on a log that nobody keeps."""

from collections.abc import Mapping
from typing import Any

import msgspec

from pipeline.apps.judges import redacting
from pipeline.config.grading import graders_of
from pipeline.config.judge_price import priced
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError
from pipeline.judges.ability import Ability
from pipeline.judges.budget import BudgetSettings
from pipeline.judges.endpoint import Endpoint
from pipeline.judges.judge import Judge
from pipeline.judges.model import ChatRequest, JudgeModel, PausedError, Reply
from pipeline.judges.openai import OpenAIModel
from pipeline.judges.purse import Purse
from pipeline.judges.votes import Vote, VotesInMemory, VoteState
from pipeline.model.result import JudgeRequest, Judgment
from pipeline.model.step import Message
from pipeline.model.time import MINUTE
from pipeline.runtime.clock import SystemClock


class Said(msgspec.Struct, frozen=True):
    """One call: the row that production would store of it, beside what was asked."""

    prompt: tuple[Message, ...]
    vote: Vote


class Trial(msgspec.Struct, frozen=True):
    """What a trial came to."""

    run_id: str
    dimension: str
    contract: str
    endpoint: str
    ability: Ability | None
    calls: tuple[Said, ...]
    """None where code decides without asking."""
    judgment: Judgment


class _Overheard:
    """A model with everything kept that it is asked."""

    def __init__(self, model: JudgeModel) -> None:
        self._model = model
        self.asked: list[ChatRequest] = []

    async def ask(self, request: ChatRequest) -> Reply:
        self.asked.append(request)
        return await self._model.ask(request)


async def trial(settings: TracegradeSettings, detail: Mapping[str, Any], dimension: str, environment: Mapping[str, str]) -> Trial:
    """Judge a dimension of the run that ``detail`` shows.

    Raises:
        ConfigurationError: there is nothing to judge, nobody to ask, or something about the endpoint that a person must mend.
        TemporaryError: the endpoint does not answer now.
    """
    transcript = detail["transcript"]
    if not transcript:
        raise ConfigurationError("the run has no transcript: it has no answer, was not sampled, or the transcript has expired")
    rubric = graders_of(settings)[settings.entry_of(_agent(detail))].grading.rubric
    judge = priced(settings).model_copy(update={"budget": BudgetSettings()})
    votes, now = VotesInMemory(), SystemClock().now
    async with OpenAIModel(judge, environment) as model:
        overheard = _Overheard(model)
        purse = Purse(judge.budget, judge.price, votes, now)
        if rubric is None:
            raise ConfigurationError(f"no rubric judges the runs of {_agent(detail)}")
        one = Judge(rubric, judge, Endpoint(overheard, judge, now), purse, votes, now, redact=redacting(settings))
        if dimension not in one.contracts:
            raise ConfigurationError(f"{dimension!r} is not judged; --dimension is one of {', '.join(one.contracts)}")
        contract = one.contracts[dimension]
        request = _request(settings.project, detail, dimension, contract.hash, now())
        try:
            judgment = await one.judge(request, dimension, contract.hash)
        except PausedError as error:
            raise ConfigurationError(str(error)) from error
    rows = [vote for vote in votes.rows if vote.state is not VoteState.INTENT]
    calls = tuple(Said(tuple(asked.messages), vote) for asked, vote in zip(overheard.asked, rows, strict=True))
    where = f"{judge.model} at {judge.base_url}"
    return Trial(request.run_id, dimension, contract.hash, where, model.ability, calls, judgment)


def _agent(detail: Mapping[str, Any]) -> str:
    return str(detail["line"]["cohort"]["agent"])


def _request(project: str, detail: Mapping[str, Any], dimension: str, contract: str, now: int) -> JudgeRequest:
    return JudgeRequest(
        project=project,
        trace_id=detail["line"]["trace_id"],
        run_id=detail["line"]["run_id"],
        agent=_agent(detail),
        run_version=detail["version"],
        transcript_hash=detail["transcript_hash"],
        transcript=detail["transcript"],
        dimensions=((dimension, contract),),
        plan="trial",
        inclusion_probability=1.0,
        requested_ns=now,
        deadline_ns=now + 15 * MINUTE,
        models=tuple(detail["models"]),
    )
