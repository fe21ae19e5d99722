"""The benchmark of the judge: what the product adds to a call that an endpoint answers at once, and what judging a run costs.

``make bench`` runs it. The endpoint is a process of its own that answers everything with the same verdict, and counts the tokens of the
worked example (scoring, section 4.3). The floor is the same client library with the same prompts and nothing else. All of it shares this machine, so
ratios travel; microseconds do not.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import openai
from judge_builders import PRICE, SUPPORT, a_request_to_judge, a_verdict, refunded

from pipeline.apps.judges import redacting
from pipeline.config.store import StoreSettings
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.judges.caller import new_nonce
from pipeline.judges.contract import ballots
from pipeline.judges.endpoint import Endpoint
from pipeline.judges.judge import Judge
from pipeline.judges.openai import OpenAIModel
from pipeline.judges.purse import Purse
from pipeline.judges.question import Question
from pipeline.judges.scripted import MODEL, Canned, ScriptedJudge
from pipeline.judges.settings import JudgeSettings
from pipeline.judges.votes import VoteLog, VotesInMemory
from pipeline.model.result import JudgeRequest, Judgment
from pipeline.runtime.clock import SystemClock
from sinks.clickhouse.store import Store

TOKENS: Final = (3000, 300)
"""Of a call, in and out, and with them the worked costs of a call and of a run with nine of them, in dollars."""
A_CALL: Final = Decimal("0.003015")
A_RUN: Final = Decimal("0.027135")
CALLS: Final = 9
"""Of a run: five dimensions, of which two have three votes."""
AT_ONCE: Final = 8
"""Calls in flight, as a judge process has them where nothing else is written."""
ROUNDS: Final = 3
"""Of everything; the best counts."""

Work = Callable[[], Awaitable[object]]


class Took(msgspec.Struct, frozen=True):
    """What a call takes one way: µs with one call at a time, of them µs at work in this process, and calls a second with several at once."""

    name: str
    alone_us: float
    works_us: float
    calls_per_s: float


async def serve() -> None:
    """Answer every question at once with one verdict, until the end of stdin."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": a_verdict()}}
    usage = dict(zip(("prompt_tokens", "completion_tokens"), TOKENS, strict=True))
    body = json.dumps({"id": "1", "object": "chat.completion", "created": 0, "model": MODEL, "choices": [choice], "usage": usage})
    async with ScriptedJudge(lambda _: Canned(body=body)) as judge:
        sys.stdout.write(f"{judge.url}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


@contextmanager
def an_endpoint() -> Iterator[str]:
    """Serve in a process of its own while the block lasts; the address is given."""
    with subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise AssertionError("the endpoint has no pipes")
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def requests(judge: Judge, runs: int, first: int) -> list[JudgeRequest]:
    """Runs to be judged, of which none was judged before."""
    one = a_request_to_judge(refunded(), judge)
    return [msgspec.structs.replace(one, run_id=f"{number:032x}") for number in range(first, first + runs)]


def bare(url: str, judge: Judge, runs: int) -> tuple[openai.AsyncOpenAI, list[Work]]:
    """The client by itself, and the calls that it makes: the prompts of the same runs, with the same wishes."""
    client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    works = []
    for request in requests(judge, runs, 0):
        for contract in judge.contracts.values():
            question = Question.of(request, SUPPORT, contract)
            messages = [{"role": one.role, "content": one.text} for one in question.messages(new_nonce())]
            named = {"name": "grade", "strict": True, "schema": question.schema}
            form = {"type": "json_schema", "json_schema": named}
            for ballot in ballots(contract):
                wishes = {"max_tokens": 2048, "temperature": ballot.temperature, "seed": ballot.seed}
                works.append(_call(client, messages, {**wishes, "response_format": form}))
    return client, works


def _call(client: openai.AsyncOpenAI, messages: list[dict[str, str]], wishes: dict[str, object]) -> Work:
    async def call() -> object:
        return await client.chat.completions.create(model=MODEL, messages=messages, extra_body=wishes)  # type: ignore[arg-type]

    return call


def judging(judge: Judge, asked: Sequence[JudgeRequest], said: list[Judgment]) -> list[Work]:
    """The judgments of these runs, one for each dimension."""

    def one(request: JudgeRequest, dimension: str, contract: str) -> Work:
        async def judged() -> None:
            said.append(await judge.judge(request, dimension, contract))

        return judged

    return [one(request, *dimension) for request in asked for dimension in request.dimensions]


async def timed(works: Sequence[Work], at_once: int) -> tuple[float, float]:
    """Return the seconds that all of it takes, and those at work in this process."""
    slots = asyncio.Semaphore(at_once)

    async def one(work: Work) -> None:
        async with slots:
            await work()

    began, worked = time.perf_counter(), time.process_time()
    await asyncio.gather(*(one(work) for work in works))
    return time.perf_counter() - began, time.process_time() - worked


async def took(name: str, calls: int, works: Callable[[], Sequence[Work]]) -> Took:
    """Measure one way, which makes so many calls each time that ``works`` is asked for."""
    alone = [await timed(works(), 1) for _ in range(ROUNDS)]
    together = [await timed(works(), AT_ONCE) for _ in range(ROUNDS)]
    best, (busy, _) = min(alone), min(together)
    return Took(name, 1e6 * best[0] / calls, 1e6 * best[1] / calls, calls / busy)


async def measured(url: str, runs: int) -> tuple[list[Took], list[Judgment], Decimal]:
    """Return what each way took, the judgments of the last one, and the dollars that its rows in the store add up to."""
    settings = JudgeSettings.model_validate({"base_url": url, "model": MODEL, "price": PRICE})
    now, said, found = SystemClock().now, list[Judgment](), list[Took]()
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        store = Store.open(StoreSettings(path=Path(folder) / "data"))
        stack.push_async_callback(store.close)
        model = await stack.enter_async_context(OpenAIModel(settings, {}))

        def judge_with(votes: VoteLog) -> Judge:
            endpoints = {MODEL: Endpoint(model, settings, now)}
            purse = Purse(settings.budget, votes, now)
            return Judge(SUPPORT, settings, endpoints, purse, votes, now, redact=redacting(TracegradeSettings()))

        client, calls = bare(url, judge_with(VotesInMemory()), runs)
        await stack.enter_async_context(client)
        found.append(await took("the client library alone", len(calls), lambda: calls))
        for name, log in (("judging, with calls kept in memory", None), ("judging, with calls kept in chDB", store.judge)):
            said.clear()

            def works(log: VoteLog | None = log) -> list[Work]:
                judge = judge_with(log or VotesInMemory())
                return judging(judge, requests(judge, runs, len(said)), said)

            found.append(await took(name, runs * CALLS, works))
        days = await store.judge.costs("default", 100)
    return found, said, sum((Decimal(str(day.cost_usd)) for day in days), Decimal(0))


def main(runs: int) -> int:
    """Measure and print; 1 where a judgment has no score, or does not cost what the specification says."""
    with an_endpoint() as url:
        found, said, dollars = asyncio.run(measured(url, runs))
    floor, judged = found[0], len(said) // len(SUPPORT.dimensions)
    lines = [f"judging at an endpoint that answers at once, {runs} runs of {CALLS} calls, best of {ROUNDS}:"]
    for one in found:
        alone = f"{one.alone_us:7.0f} µs a call ({one.alone_us / floor.alone_us:4.2f} times the library's)"
        work = f"{one.works_us:6.0f} of work here ({one.works_us / floor.works_us:4.2f} times)"
        lines.append(f"{one.name:36} {alone}   {work}   {one.calls_per_s:6.0f} calls/s with {AT_ONCE} at once")
    lines.append(
        f"{dollars / judged / CALLS:.6f} dollars a call (worked: {A_CALL}), {dollars / judged:.6f} a run (worked: {A_RUN})"
    )
    sys.stdout.write("\n".join(lines) + "\n")
    is_priced = abs(dollars - A_RUN * judged) < Decimal("0.000001")
    return int(not is_priced or any(one.score is None for one in said))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sys.exit(asyncio.run(serve()) if given.serve else main(given.runs))
