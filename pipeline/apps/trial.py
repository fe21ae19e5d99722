"""Trial: one dimension of one run judged in the open. The same judge as in production, on a log that nobody keeps."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
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
from pipeline.stages.grade import JudgedDimension


class Said(msgspec.Struct, frozen=True):
    """One call: the row that production would store of it, beside what was asked."""

    prompt: tuple[Message, ...]
    vote: Vote


class Panelist(msgspec.Struct, frozen=True):
    """A model that was asked: where it is, and what its endpoint was found to take."""

    endpoint: str
    ability: Ability | None


class Trial(msgspec.Struct, frozen=True):
    """What a trial came to."""

    run_id: str
    dimension: str
    contract: str
    authority: str
    """What the judge has earned under this contract."""
    counts: bool
    """Whether a score of this authority may decide."""
    asked: tuple[Panelist, ...]
    calls: tuple[Said, ...]
    """None where code decides without asking."""
    judgment: Judgment


class _Overheard:
    """A model with everything kept that it is asked."""

    def __init__(self, model: JudgeModel, asked: list[ChatRequest]) -> None:
        self._model = model
        self._asked = asked

    async def ask(self, request: ChatRequest) -> Reply:
        self._asked.append(request)
        return await self._model.ask(request)


async def trial(settings: TracegradeSettings, detail: Mapping[str, Any], dimension: str, environment: Mapping[str, str]) -> Trial:
    """Judge a dimension of the run that ``detail`` shows.

    Raises:
        ConfigurationError: there is nothing to judge, nobody to ask, or something about an endpoint that a person must mend.
        TemporaryError: an endpoint does not answer now.
    """
    if not detail["transcript"]:
        raise ConfigurationError("the run has no transcript: it has no answer, was not sampled, or the transcript has expired")
    grading = graders_of(settings)[settings.entry_of(_agent(detail))].grading.paired_with(detail["models"])
    if grading.rubric is None:
        raise ConfigurationError(f"no rubric judges the runs of {_agent(detail)}")
    asked_of = next((one for one in grading.judged if one.name == dimension), None)
    if asked_of is None:
        names = ", ".join(one.name for one in grading.judged)
        raise ConfigurationError(f"{dimension!r} is not judged; --dimension is one of {names}")
    judge, votes, now = priced(settings).model_copy(update={"budget": BudgetSettings()}), VotesInMemory(), SystemClock().now
    heard: list[ChatRequest] = []
    async with AsyncExitStack() as stack:
        models = {name: await stack.enter_async_context(OpenAIModel(judge.of(name), environment)) for name in judge.ids}
        endpoints = {name: Endpoint(_Overheard(one, heard), judge.of(name), now) for name, one in models.items()}
        purse = Purse(judge.budget, votes, now)
        one = Judge(grading.rubric, judge, endpoints, purse, votes, now, redact=redacting(settings))
        try:
            judgment = await one.judge(_request(settings.project, detail, asked_of, now()), dimension, asked_of.contract)
        except PausedError as error:
            raise ConfigurationError(str(error)) from error
    rows = [vote for vote in votes.rows if vote.state is not VoteState.INTENT]
    return Trial(
        run_id=judgment.run_id,
        dimension=dimension,
        contract=asked_of.contract,
        authority=asked_of.authority,
        counts=asked_of.authority in grading.deciding,
        asked=tuple(Panelist(f"{name} at {judge.of(name).base_url}", models[name].ability) for name in judgment.models),
        calls=tuple(Said(tuple(asked.messages), vote) for asked, vote in zip(heard, rows, strict=True)),
        judgment=judgment,
    )


def _agent(detail: Mapping[str, Any]) -> str:
    return str(detail["line"]["cohort"]["agent"])


def _request(project: str, detail: Mapping[str, Any], dimension: JudgedDimension, now: int) -> JudgeRequest:
    return JudgeRequest(
        project=project,
        trace_id=detail["line"]["trace_id"],
        run_id=detail["line"]["run_id"],
        agent=_agent(detail),
        run_version=detail["version"],
        transcript_hash=detail["transcript_hash"],
        transcript=detail["transcript"],
        dimensions=((dimension.name, dimension.contract),),
        plan="trial",
        inclusion_probability=1.0,
        requested_ns=now,
        deadline_ns=now + 15 * MINUTE,
        models=tuple(detail["models"]),
    )
