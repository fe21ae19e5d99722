"""What all judges of a process share: one endpoint, what is known of it, and their part of the day's money and of a minute's calls."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from builders import T0
from judge_builders import SUPPORT, a_request_to_judge, refunded
from msgspec.structs import replace
from opentelemetry.metrics import NoOpMeter
from unit.runtime.turns import until
from worlds import Log

from pipeline.apps.holdings import Holdings
from pipeline.apps.judges import BELIEVED, Judges
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import TemporaryError
from pipeline.judges.ability import Ability, Form
from pipeline.judges.contract import judge_contract
from pipeline.judges.scripted import MODEL, ScriptedJudge, failing
from pipeline.judges.votes import VotesInMemory
from pipeline.model.result import JudgeRequest, Judgment, Unresolved
from pipeline.model.rubric import Panel
from pipeline.model.topology import JUDGE, JUDGING, TOPICS, TRACES, Publish, Topic
from pipeline.runtime.clock import ManualClock
from pipeline.runtime.fence import Fence
from pipeline.runtime.judging import Judging
from pipeline.runtime.telemetry import Metric, Telemetry
from sinks.clickhouse.judge_calls import KnownEndpoint
from sinks.memory import MemoryStore


class Table(VotesInMemory):
    """The judge's tables, in memory."""

    def __init__(self, known: KnownEndpoint | None = None) -> None:
        super().__init__()
        self.known = known
        self.away = False
        self.learned: list[tuple[str, str, Form]] = []

    async def endpoint(self, base_url: str, model: str) -> KnownEndpoint | None:
        if self.away:
            raise TemporaryError("the store is away")
        assert base_url.startswith("http://127.0.0.1")
        return self.known if model == MODEL else None

    async def keep_endpoint(self, base_url: str, model: str, ability: Ability, at_ns: int) -> None:
        if self.away:
            raise TemporaryError("the store is away")
        self.learned.append((base_url, model, ability.form))
        if model != MODEL:
            return
        self.known = KnownEndpoint(ability, at_ns)


class World:
    def __init__(self, server: ScriptedJudge, table: Any, **judge: Any) -> None:
        given = {"base_url": server.url, "model": MODEL, "price": {"input_per_million": 1, "output_per_million": 1}}
        self.settings = TracegradeSettings.model_validate({"judge": given | judge})
        self.clock = ManualClock(T0)
        self.telemetry = Telemetry(NoOpMeter("test"))
        self.judges = Judges(self.settings, {"default": SUPPORT}, table, self.clock, self.telemetry)

    def request(self, number: int = 0) -> JudgeRequest:
        contracts = {one.name: judge_contract(SUPPORT, one.name, self.settings.judge) for one in SUPPORT.dimensions}
        known: Any = SimpleNamespace(contracts=contracts)
        return a_request_to_judge(replace(refunded(), run_id=f"{number:032x}"), known)

    async def asks(self, ask: Any, number: int = 0) -> Any:
        request = self.request(number)
        return await ask(request, "tone", dict(request.dimensions)["tone"])


@asynccontextmanager
async def a_world(
    table: Any, formats: frozenset[str] = frozenset({"json_schema"}), **judge: Any
) -> AsyncIterator[tuple[World, ScriptedJudge]]:
    async with ScriptedJudge(formats=formats) as server:
        world = World(server, table, **judge)
        async with world.judges.opened({}):
            yield world, server


async def test_what_an_endpoint_takes_is_remembered_for_the_next_start() -> None:
    table: Any = Table()
    async with a_world(table, formats=frozenset()) as (world, server):
        await world.asks(world.judges.ask_of(1, 1))
        tried = len(server.asked)
    assert tried > 1
    assert (table.known.ability.form, table.known.learned_ns) == (Form.TEXT, T0)
    async with a_world(table, formats=frozenset()) as (world, server):
        await world.asks(world.judges.ask_of(1, 1), 1)
        assert len(server.asked) == 1


async def test_what_was_learned_long_ago_is_found_out_anew() -> None:
    table: Any = Table(KnownEndpoint(Ability(Form.TEXT, usage=True), T0 - BELIEVED))
    async with a_world(table) as (world, _):
        await world.asks(world.judges.ask_of(1, 1))
    assert table.known.ability.form is Form.JSON_SCHEMA


async def test_a_store_that_is_away_keeps_nobody_from_asking() -> None:
    table: Any = Table()
    table.away = True
    async with a_world(table) as (world, _):
        assert (await world.asks(world.judges.ask_of(1, 1))).score is not None


async def test_who_owns_a_part_of_the_partitions_has_that_part_of_the_money() -> None:
    table: Any = Table()
    async with a_world(table, max_output_tokens=1000, budget={"per_day": "0.04"}) as (world, _):
        whole = [await world.asks(world.judges.ask_of(1, 1), number) for number in range(4)]
        assert [one.unresolved for one in whole] == [""] * 4
        parts = [await world.asks(world.judges.ask_of(1, 40), 100 + number) for number in range(4)]
        assert [one.unresolved for one in parts] == [Unresolved.BUDGET] * 4


async def test_another_assignment_reads_what_others_have_spent_meanwhile() -> None:
    table: Any = Table()
    async with a_world(table, budget={"per_day": "0.04"}) as (world, _):
        first = world.judges.ask_of(1, 1)
        assert (await world.asks(first)).score is not None
        table.rows = [replace(row, cost_usd=0.04) for row in table.rows]
        assert (await world.asks(first, 1)).score is not None, "an owner asks nobody what it spent itself"
        assert (await world.asks(world.judges.ask_of(1, 1), 2)).unresolved == Unresolved.BUDGET


async def test_a_minutes_calls_are_shared_by_partitions() -> None:
    table: Any = Table()
    async with a_world(table, requests_per_minute=60, tokens_per_minute=6000) as (world, _):
        world.judges.ask_of(2, 8)
        (endpoint,) = world.judges._endpoints.values()
        assert (endpoint._requests.per_minute, endpoint._tokens.per_minute) == (15, 1500)


async def test_each_model_has_its_endpoint_its_limits_and_what_is_known_of_it() -> None:
    """A panel of two endpoints, as a worker opens them: one purse, one log, and each its own."""
    table: Any = Table()
    async with ScriptedJudge(formats=frozenset()) as other:
        further = {"llama-3.3-70b": {"base_url": other.url, "requests_per_minute": 30}, "gpt-4.1": {}}
        panelled = replace(SUPPORT, panels=(("tone", Panel((MODEL, "llama-3.3-70b"))),))
        async with a_world(table, models=further, requests_per_minute=60) as (world, server):
            judges = Judges(world.settings, {"default": panelled}, table, world.clock, world.telemetry)
            async with judges.opened({}):
                ask = judges.ask_of(1, 2)
                tone = judge_contract(panelled, "tone", world.settings.judge)
                known: Any = SimpleNamespace(contracts={"tone": tone})
                judgment = await ask(a_request_to_judge(refunded(), known), "tone", tone.hash)
                rates = {name: one._requests.per_minute for name, one in judges._endpoints.items()}
        assert [asked.body["model"] for asked in (*server.asked, other.asked[-1])] == [MODEL, "llama-3.3-70b"]
    assert (judgment.models, judgment.votes) == ((MODEL, "llama-3.3-70b"), 2)
    assert rates == {MODEL: 30, "llama-3.3-70b": 15, "gpt-4.1": 30}
    assert {(base_url, model): form for base_url, model, form in table.learned} == {
        (server.url, MODEL): Form.JSON_SCHEMA,
        (other.url, "llama-3.3-70b"): Form.TEXT,
    }


async def test_a_metric_says_whether_judgments_are_held_back() -> None:
    async with ScriptedJudge(lambda _: failing(402)) as server:
        world = World(server, Table())
        async with world.judges.opened({}):
            assert world.telemetry.snapshot()[Metric.JUDGE_HELD_BACK] == 0
            with pytest.raises(TemporaryError):
                await world.asks(world.judges.ask_of(1, 1))
            assert world.telemetry.snapshot()[Metric.JUDGE_HELD_BACK] == 1


async def test_several_processes_share_the_work_and_the_money_by_partitions() -> None:
    """Two judge nodes as workers have them, each with half of the partitions of the topic, on one log of calls."""
    table: Any = Table()
    requests: list[JudgeRequest] = []
    given_back: list[Judgment] = []

    async def publish(topic: Topic, records: Sequence[Any]) -> None:
        assert topic is TRACES
        given_back.extend(records)

    async with a_world(table, max_output_tokens=1000, budget={"per_day": "0.0135"}) as (world, server):
        requests += [only_tone(world.request(number)) for number in range(12)]
        nodes = [a_holding(world, publish, owned) for owned in ({0, 1}, {2, 3})]
        log = Log(JUDGE, 4)
        incoming = log.append(requests, T0)
        for owned, node in zip(({0, 1}, {2, 3}), nodes, strict=True):
            await node.take([one for one in incoming if one.partition in owned])
        await until(lambda: len(given_back) == len(requests))
        for node in nodes:
            await node.close()
        asked = len(server.asked)
    assert sorted(one.run_id for one in given_back) == sorted(one.run_id for one in requests), "each by one of them, once"
    by_partition = Counter(JUDGE.partition_of(one, 4) for one in requests)
    bought = Counter(
        JUDGE.partition_of(one, 4) for one in requests for said in given_back if said.run_id == one.run_id and said.votes
    )
    assert sum(bought.values()) == asked
    assert set(bought) == set(by_partition), "every part of the day buys something"
    capped = [one for one in given_back if one.unresolved == Unresolved.BUDGET]
    assert len(capped) == len(requests) - asked > 0
    for part in range(4):
        assert await table.charged("default", 0, 2**62, part, 4) <= 0.0135 / 4


def only_tone(request: JudgeRequest) -> JudgeRequest:
    return replace(request, dimensions=tuple(one for one in request.dimensions if one[0] == "tone"))


def a_holding(world: World, publish: Publish, owned: set[int]) -> Judging:
    parts: Any = SimpleNamespace(settings=world.settings)
    store: Any = MemoryStore()
    partitions = {topic.name: 4 for topic in TOPICS}
    holdings = Holdings(parts, store, publish, partitions, world.judges.ask_of, world.clock, world.telemetry, {})
    judging = holdings.of(JUDGING)(owned, Fence(), lambda partition, offset: None)  # noqa: ARG005 - nobody commits
    assert isinstance(judging, Judging)
    return judging
