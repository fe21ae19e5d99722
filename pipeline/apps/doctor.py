"""Doctor: whether what a configuration names is there and works, one line a part, and what to do where it is not."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from pipeline.apps import served
from pipeline.apps.judge_commands import ability_line, dollars
from pipeline.config.check import check
from pipeline.config.judge_price import priced
from pipeline.config.load import load
from pipeline.config.rubrics import load as rubric_of
from pipeline.config.store import StoreSettings
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.judges.contract import judge_contract
from pipeline.judges.model import CUT, ChatRequest, Reply
from pipeline.judges.openai import OpenAIModel
from pipeline.judges.prompt import build
from pipeline.judges.question import Question
from pipeline.judges.settings import JudgeSettings
from pipeline.judges.transcript import Document, Observation
from pipeline.model.result import JudgeRequest
from pipeline.model.rubric import MeasuredBy, Rubric

TROUBLE: Final = (ConfigurationError, TemporaryError, PermanentError)
_RUBRIC: Final = "support"
_REFUND: Final = Document(
    system="You are a support agent.",
    earlier=(),
    request="Please refund order A-1001.",
    observations=(Observation("issue_refund", '{"order_id": "A-1001"}', '{"refund_id": "R-1", "amount": 42.5}'),),
    claims=(),
    answer="I refunded 42.50 USD for order A-1001.",
)
"""A small run that the endpoint is asked about: nobody's data leaves the machine for it."""


class Finding(msgspec.Struct, frozen=True):
    """What was found of one part. ``ok`` is None where it is not configured."""

    part: str
    ok: bool | None
    said: str

    def line(self) -> str:
        """Return it as it reads in a terminal."""
        return f"{ {True: 'ok', False: 'NOT OK', None: '-'}[self.ok]:6}  {self.part:13}  {self.said}"


async def examine(config: Path | None, environment: Mapping[str, str] = os.environ) -> AsyncIterator[Finding]:
    """Yield what is found, part by part; without a usable configuration there is only that to say."""
    report = check(config, environment)
    for error in report.errors:
        yield Finding("configuration", ok=False, said=error)
    if not report.ok:
        return
    for warning in report.warnings:
        yield Finding("configuration", ok=True, said=f"warning: {warning}")
    yield Finding("configuration", ok=True, said=f"{report.file} is good; tracegrade check shows what it comes to")
    settings = load(config, environment)
    yield await _found("store", _store(settings, environment))
    if settings.kafka is None:
        yield Finding("broker", ok=None, said="none is configured, and tracegrade up needs none")
    else:
        yield await _found("broker", _broker(settings, environment))
    if settings.judge.base_url is None:
        yield Finding("judge", ok=None, said="none is configured: judged dimensions stay unresolved (no_judge); docs/judge.md")
    else:
        judge = priced(settings)
        for model in judge.ids:
            async for one in _judge(judge.of(model), environment):
                yield one


async def _found(part: str, looking: Awaitable[str]) -> Finding:
    try:
        return Finding(part, ok=True, said=await looking)
    except TROUBLE as error:
        return Finding(part, ok=False, said=str(error))


async def _store(settings: TracegradeSettings, environment: Mapping[str, str]) -> str:
    store = settings.store
    if store.url is None:
        url = served.address(store.path)
        if url is not None:
            await asyncio.to_thread(
                served.ask, url, "/api/accounting", served.key_of(settings, environment), None, settings.receiver.tls
            )
            return f"{store.path} is open in the tracegrade up at {url}, which answers"
        if not store.path.exists():
            return f"{store.path} is not there yet; tracegrade up makes it"
    return await asyncio.to_thread(_opened, store, environment)


def _opened(settings: StoreSettings, environment: Mapping[str, str]) -> str:
    from sinks.clickhouse.connection import connect  # noqa: PLC0415 - the engine alone takes seconds

    database = connect(settings, environment)
    try:
        version = database.query("SELECT version() AS version")[0]["version"]
    finally:
        database.close()
    return f"{settings.url or settings.path} answers: ClickHouse {version}"


async def _broker(settings: TracegradeSettings, environment: Mapping[str, str]) -> str:
    from collectors.kafka.topics import partitions  # noqa: PLC0415 - only where there is one

    kafka = settings.kafka_or_refuse()
    counts = await asyncio.to_thread(partitions, kafka, environment)
    return f"{', '.join(kafka.brokers)}: all {len(counts)} topics are there"


async def _judge(settings: JudgeSettings, environment: Mapping[str, str]) -> AsyncIterator[Finding]:
    """Ask about a refund that went well, as production would."""
    rubric = rubric_of(_RUBRIC)
    name = next(one.name for one in rubric.dimensions if one.measured_by is MeasuredBy.JUDGE)
    question = _question(rubric, name, settings)
    request = ChatRequest(
        messages=build(rubric, name, _REFUND, "0" * 32),
        schema=question.schema,
        most_tokens=settings.max_output_tokens,
        temperature=settings.temperature,
        seed=settings.seeds[0],
    )
    try:
        async with OpenAIModel(settings, environment) as model:
            reply = await model.ask(request)
            ability = model.ability
    except TROUBLE as error:
        yield Finding("judge", ok=False, said=str(error) if settings.at == "judge" else f"{settings.model}: {error}")
        return
    yield Finding(
        "judge", ok=True, said=f"{settings.model} at {settings.base_url} answers, as {reply.served_model or 'nobody says what'}"
    )
    if ability is not None:
        yield Finding("judge", ok=True, said=f"it takes {ability_line(msgspec.to_builtins(ability))}")
    yield _read(question, reply, settings.at)
    yield _priced(settings, reply)


def _question(rubric: Rubric, name: str, settings: JudgeSettings) -> Question:
    body = msgspec.json.encode(_REFUND).decode()
    request = JudgeRequest(
        project="doctor",
        trace_id="",
        run_id="",
        agent="",
        run_version=0,
        transcript_hash="",
        transcript=body,
        dimensions=(),
        plan="doctor",
        inclusion_probability=1.0,
        requested_ns=0,
        deadline_ns=0,
    )
    return Question.of(request, rubric, judge_contract(rubric, name, settings))


def _read(question: Question, reply: Reply, at: str) -> Finding:
    grade = question.grade(reply.text)
    if grade.score is not None:
        return Finding(
            "judge", ok=True, said=f"its verdict on a refund that went well can be read: {grade.score:g}, {grade.outcome}"
        )
    todo = (
        f"raise {at}.max_output_tokens"
        if reply.finish_reason == CUT
        else "judgments like this end without a score; try a larger model"
    )
    return Finding("judge", ok=False, said=f"its verdict is no score ({grade.reason}); {todo}")


def _priced(settings: JudgeSettings, reply: Reply) -> Finding:
    if reply.input_tokens is None or reply.output_tokens is None:
        return Finding(
            "judge",
            ok=True,
            said="it does not count tokens, so costs are unknown and a budget charges the most that a call can cost",
        )
    tokens = f"{reply.input_tokens} tokens in, {reply.output_tokens} out"
    if settings.price is None:
        return Finding("judge", ok=True, said=f"the question took {tokens}; write {settings.at}.price, so that costs are known")
    return Finding(
        "judge",
        ok=True,
        said=f"the question took {tokens}: {dollars(float(settings.price.cost(reply.input_tokens, reply.output_tokens)))} dollars",
    )
