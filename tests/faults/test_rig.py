"""The rig itself, as far as it needs no broker: what it watches, what it breaks, and what it compares."""

from typing import Any

import pytest
from clickhouse_front_server import Faults
from faults import sabotage
from faults.ledger import HEAD, Ledger, attributes, request
from faults.logical import differing
from faults.watch import Seen

from sinks.clickhouse.migrate import shipped


def test_what_is_committed_is_promised_and_what_is_not_is_not() -> None:
    seen = Seen()
    seen.add(0, 0, [("t", "1"), ("t", "2")])
    seen.add(0, 1, [("t", "3")])
    seen.add(1, 0, [("u", "1")])
    assert seen.promised({0: 1}) == {("t", "1"): (0, 0), ("t", "2"): (0, 0)}
    assert seen.promised({0: 1, 1: 0}) == {}
    assert seen.promised({0: 2, 1: 1}) == {("t", "3"): (0, 1), ("u", "1"): (1, 0)}


def test_a_span_that_came_twice_is_counted() -> None:
    seen = Seen()
    seen.add(0, 0, [("t", "1"), ("t", "2")])
    seen.add(1, 0, [("t", "1")])
    assert seen.doubled == 1


@pytest.mark.parametrize("name", sabotage.POINTS)
def test_every_point_is_a_call_that_the_product_makes(name: str) -> None:
    _, owner, method = sabotage.POINTS[name]
    assert callable(getattr(owner, method))


@pytest.mark.parametrize("name", sabotage.INSERTS)
def test_every_insert_is_into_a_table_that_is_there(name: str) -> None:
    when, table = sabotage.INSERTS[name].split(":")
    assert when in {"before", "after"}
    assert any(f"TABLE IF NOT EXISTS {table} (" in one.sql for one in shipped())


async def test_a_point_strikes_at_the_passing_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Worker:
        passed = 0

        async def work(self, by: int) -> int:
            self.passed += by
            return self.passed

    points: dict[str, Any] = {"early.point": ("before", Worker, "work"), "late.point": ("after", Worker, "work")}
    monkeypatch.setattr(sabotage, "POINTS", points)
    monkeypatch.setattr(Worker, "work", Worker.work)
    sabotage.at_point("raise", "late.point", 2)
    sabotage.at_point("raise", "early.point", 3)
    worker = Worker()
    assert await worker.work(5) == 5
    for _ in range(2):
        with pytest.raises(RuntimeError, match="sabotage"):
            await worker.work(5)
    assert worker.passed == 10


def test_a_store_lies_about_the_share_that_is_asked_for_by_turns() -> None:
    faults = Faults()
    faults.set({"lie_share": 0.2})
    for _ in range(1000):
        faults.draw()
        if not faults.take("apply_then_500"):
            faults.take("apply_then_close")
    lied = faults.counted["apply_then_500"], faults.counted["apply_then_close"]
    assert 150 <= sum(lied) <= 250
    assert abs(lied[0] - lied[1]) <= 1


def test_two_readings_differ_by_a_row_and_by_how_often_it_is_there() -> None:
    before: dict[str, list[tuple[str, ...]]] = {"runs": [("a", "1"), ("b", "1")], "spans": [("s",)]}
    assert differing(before, before) == {}
    assert differing(before, {**before, "runs": [("a", "2"), ("b", "1")]}) == {"runs": [("a", "1"), ("a", "2")]}
    assert differing(before, {**before, "spans": [("s",), ("s",)]}) == {"spans": [("1", "2")]}
    assert differing(before, {"runs": before["runs"]}) == {"spans": [("s",)]}


def test_a_ledger_owes_what_was_acknowledged_and_knows_what_was_not() -> None:
    ledger = Ledger()
    sent = ledger.trace("agent", fails=True)
    assert not ledger.due()
    ledger.gone(sent, (HEAD, 2), 1)
    sent.acknowledged.add(HEAD)
    ledger.answered(1, 0)
    assert (ledger.spans, ledger.unknown, ledger.unanswered, ledger.accepted) == (1, 2, 3, 1)
    assert len(ledger.due()) == 1


def test_a_request_says_what_the_ledger_knows() -> None:
    sent = Ledger().trace("agent")
    said = request(sent, (HEAD, 7), 1)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert [int(one["spanId"], 16) for one in said[:2]] == [HEAD, 7]
    assert {one["key"]: one["value"]["stringValue"] for one in said[1]["attributes"]} == attributes(sent, 7)
    assert said[2]["traceId"] == "0" * 32
