"""What the owner of traces may expect of a store for what was read of record sources."""

from typing import TypeAlias

import pytest
from builders import T0, a_span
from msgspec.structs import replace
from unit.clickhouse.records import a_run, a_run_version, a_version

from pipeline.model.evidence import Evidence, Found, Question, answered
from pipeline.model.time import DAY, SECOND
from pipeline.model.version import StoredTrace
from sinks.clickhouse.store import Store
from sinks.memory import MemoryStore

AnyStore: TypeAlias = Store | MemoryStore
TRACE = "ab" * 16


def asked(project: str, key: str = '{"order": "Ä-1\\u0000"}', calls: str = "c") -> Question:
    return Question(project, TRACE, "r", "payments", "0123456789abcdef", key, calls)


def read(project: str, at: int = T0, **fields: str) -> Evidence:
    return answered(asked(project, **fields), Found.RECORD, at, body='{"amount":12.50,"note":"ÄÖ\\ud83d"}')


async def load_one(store: AnyStore, project: str) -> StoredTrace:
    return (await store.load([(project, TRACE)]))[project, TRACE]


@pytest.mark.parametrize("order", [(0, 5), (5, 0)], ids=["in order", "the first one comes last"])
async def test_of_two_answers_to_one_question_the_first_stays(store: AnyStore, order: tuple[int, int]) -> None:
    project = f"evidence-{order[0]}"
    answers = {later: answered(asked(project), Found.ABSENT, T0 + later) if later else read(project) for later in order}
    for later in order:
        await store.insert_evidence([answers[later]])
        await store.insert_evidence([answers[later]])
    assert (await load_one(store, project)).evidence == (answers[0],)


async def test_all_that_was_read_comes_back_as_it_was_stored(store: AnyStore) -> None:
    failed = answered(asked("kinds", key="{}"), Found.FAILED, T0 + 1, error="no answer within 5 s")
    absent = answered(asked("kinds", calls="others"), Found.ABSENT, T0 + 2)
    await store.insert_evidence([read("kinds"), failed, absent])
    stored = (await load_one(store, "kinds")).evidence
    assert sorted(stored, key=lambda one: one.read_ns) == [read("kinds"), failed, absent]
    assert (await load_one(store, "nobody")).evidence == ()


async def test_evidence_is_a_fact_of_its_trace(store: AnyStore) -> None:
    key = ("counted", TRACE)
    await store.insert_evidence([read("counted")])
    assert await store.written([key]) == {key}, "what came before any span is looked up with the first one"
    await store.insert_spans([a_span(project="counted")])
    await store.write([a_version(a_run_version(a_run("counted"), 8), facts=2)])
    assert key not in await store.unfinished()
    await store.insert_evidence([read("counted", calls="others", at=T0 + 2 * DAY)])
    assert key in await store.unfinished()
    assert key in await store.unfinished(since_ns=T0 + DAY)
    assert key not in await store.unfinished(since_ns=T0 + 3 * DAY)


async def test_an_answer_that_turns_out_to_have_come_earlier_is_news(store: AnyStore) -> None:
    key = ("early-answer", TRACE)
    span = a_span(project="early-answer")
    await store.insert_spans([span])
    await store.insert_evidence([read("early-answer")])
    version = replace(a_version(a_run_version(a_run("early-answer"), 8), facts=2), receipts=span.received_ns + T0)
    await store.write([version])
    assert key not in await store.unfinished()
    await store.insert_evidence([read("early-answer", at=T0 + SECOND)])
    assert key not in await store.unfinished(), "it came again, which is no news"
    await store.insert_evidence([read("early-answer", at=T0 - 1)])
    assert key in await store.unfinished()
