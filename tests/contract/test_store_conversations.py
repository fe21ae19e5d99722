"""Conversations, as people and programs read them: the same from the store in memory and from those in ClickHouse."""

from decimal import Decimal
from typing import Any, TypeAlias

from builders import T0
from msgspec.structs import replace
from unit.clickhouse.records import COHORT, a_run, a_run_version, a_version, retract

from pipeline.model.conversation import Conversation, ConversationTurn, Outcomes
from pipeline.model.result import Outcome, Verdict
from pipeline.model.run import Cohort, Place, RunClass
from pipeline.model.spending import Cost
from pipeline.model.step import Usage
from pipeline.model.time import MINUTE, SECOND
from pipeline.model.version import RunVersion
from sinks.clickhouse.store import Store
from sinks.memory import MemoryStore

AnyStore: TypeAlias = Store | MemoryStore


UNKNOWN = Cost(unknown="price_unknown: the price table has no m", prices="2026-11-30-0badcafe")


def known(usd: str) -> Cost:
    return Cost(Decimal(usd), prices="2026-11-30-0badcafe")


def turn(project: str, number: int, outcome: Outcome | None = Outcome.PASS, cost: Cost = UNKNOWN, **fields: Any) -> RunVersion:
    """The run of a trace of its own that starts ``number`` minutes after T0."""
    start = T0 + number * MINUTE
    run = a_run(project, f"{number + 1:032x}", start_ns=start, end_ns=start + SECOND, **fields)
    label = RunClass.PENDING if outcome is None else RunClass.JUDGED
    return a_run_version(run, verdict=Verdict(outcome, "because"), run_class=label, cost=cost)


async def write(store: AnyStore, *turns: RunVersion) -> None:
    for one in turns:
        await store.write([a_version(one)])


async def test_all_runs_of_a_conversation_add_up_and_what_was_not_measured_stays_apart(store: AnyStore) -> None:
    await write(
        store,
        turn("adds", 3, None, usage=Usage()),
        turn("adds", 0, usage=Usage(100, 20), cost=known("0.25"), place=Place(Cohort("router"), T0)),
        turn("adds", 1, Outcome.FAIL, usage=Usage(50, None), cost=known("0.5"), agents=("researcher", "writer")),
        turn("adds", 2, Outcome.INSUFFICIENT_EVIDENCE, usage=Usage(1)),
        turn("adds", 4, Outcome.GRADER_ERROR, usage=Usage(None, 5)),
    )
    (found,) = await store.conversations.latest("adds")
    assert found == Conversation(
        id="conversation-7",
        runs=5,
        agents=("refunds", "researcher", "router", "writer"),
        outcomes=Outcomes(passed=1, failed=1, insufficient_evidence=1, grader_error=1, pending=1),
        input_tokens=151,
        output_tokens=25,
        cost_usd=None,  # 0.75 is what two of them cost
        without_tokens=1,
        without_cost=3,
        start_ns=T0,
        end_ns=T0 + 4 * MINUTE + SECOND,
    )
    detail = await store.conversations.one("adds", "conversation-7")
    assert detail is not None
    assert detail.conversation == found
    assert [one.start_ns for one in detail.turns] == [T0 + number * MINUTE for number in range(5)]
    assert [one.verdict for one in detail.turns] == ["pass", "fail", "insufficient_evidence", None, "grader_error"]


async def test_a_conversation_cost_what_its_runs_did_exactly_where_that_is_known_of_all(store: AnyStore) -> None:
    await write(store, turn("spent", 0, cost=known("0.003015")), turn("spent", 1, cost=known("10")))
    (found,) = await store.conversations.latest("spent")
    assert (str(found.cost_usd), found.without_cost) == ("10.003015", 0)
    detail = await store.conversations.one("spent", "conversation-7")
    assert detail is not None
    assert [str(one.cost_usd) for one in detail.turns] == ["0.003015", "10"]


async def test_each_outcome_is_counted_apart(store: AnyStore) -> None:
    drawn = (Outcome.PASS, *[Outcome.FAIL] * 2, *[Outcome.INSUFFICIENT_EVIDENCE] * 3, *[Outcome.GRADER_ERROR] * 4, *[None] * 5)
    await write(store, *(turn("apart", number, outcome) for number, outcome in enumerate(drawn)))
    (found,) = await store.conversations.latest("apart")
    assert found.outcomes == Outcomes(passed=1, failed=2, insufficient_evidence=3, grader_error=4, pending=5)


async def test_a_turn_is_a_run_in_one_line(store: AnyStore) -> None:
    one = turn("line", 0, request="ü" * 1000, answer=None, usage=Usage())
    await write(store, one)
    detail = await store.conversations.one("line", "conversation-7")
    assert detail is not None
    assert detail.turns == (
        ConversationTurn(
            run_id=one.run.run_id,
            trace_id=f"{1:032x}",
            cohort=COHORT,
            request="ü" * 300,
            answer=None,
            ended="answer",
            verdict="pass",
            reason="because",
            run_class="judged",
            class_reason="",
            tool_calls=1,
            agents=("researcher",),
            input_tokens=None,
            output_tokens=None,
            cost_usd=None,
            start_ns=T0,
            end_ns=T0 + SECOND,
        ),
    )
    assert (detail.conversation.input_tokens, detail.conversation.cost_usd) == (None, None), "what nobody says is no 0"


async def test_only_the_latest_live_versions_count_and_each_project_has_its_own(store: AnyStore) -> None:
    moved, merged, kept = (turn("latest", number) for number in range(3))
    heir = a_run("latest", merged.run.trace_id, "a2", conversation_id="")
    await write(store, moved, merged, kept, turn("another", 0))
    await store.write([a_version(replace(moved, version=8, run=replace(moved.run, conversation_id="elsewhere")), facts=2)])
    await store.write([a_version(a_run_version(heir, 8), facts=2, retractions=(retract(merged.run, heir, 8),))])
    assert {one.id: one.runs for one in await store.conversations.latest("latest")} == {"conversation-7": 1, "elsewhere": 1}
    detail = await store.conversations.one("latest", "conversation-7")
    assert detail is not None
    assert [one.run_id for one in detail.turns] == [kept.run.run_id]
    assert await store.conversations.one("latest", "nobody's") is None
    assert await store.conversations.one("latest", "") is None, "a run without a conversation is in none"


async def test_the_conversations_that_ended_last_come_first_and_a_long_one_shows_its_last_turns(store: AnyStore) -> None:
    names = ("old", "new", "new", "new", "odd ' \" \\ 会话")
    agents = {4: Place(Cohort("router"), T0)}
    await write(
        store,
        *(
            turn("order", number, conversation_id=name, agents=(), place=agents.get(number, Place(COHORT, T0)))
            for number, name in enumerate(names)
        ),
    )
    latest = [one.id for one in await store.conversations.latest("order")]
    assert latest == [names[4], "new", "old"]
    assert [one.id for one in await store.conversations.latest("order", 1)] == [names[4]]
    assert [one.id for one in await store.conversations.latest("order", agent="router")] == [names[4]]
    assert await store.conversations.one("order", names[4]) is not None
    detail = await store.conversations.one("order", "new", 2)
    assert detail is not None
    assert (detail.conversation.runs, [one.start_ns for one in detail.turns]) == (3, [T0 + 2 * MINUTE, T0 + 3 * MINUTE])
