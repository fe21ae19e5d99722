"""Each law is broken once on purpose: a law that a broken product passes would be no law."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import pytest
from assembly_law import (
    GRADING,
    assert_accounting,
    assert_an_earlier_receipt_moves_a_run,
    assert_schedule_changes_nothing,
    facts,
    received_again,
)
from hypothesis import strategies as st
from law_search import searched
from ownership_law import (
    assert_a_run_that_never_was_is_retracted,
    assert_an_old_version_counts_less,
    assert_ownership_changes_nothing,
    group_schedules,
)
from worlds import log_records, run_world, schedules, span

import pipeline.model.version
from collectors.kafka.records import Incoming
from pipeline.model.log_record import LogRecord, as_event
from pipeline.model.span import Span
from pipeline.model.topology import Record
from pipeline.model.version import ResultRow, TraceKey, TraceVersion
from pipeline.runtime.assembling import Assembling
from pipeline.runtime.owner import TraceOwner
from pipeline.stages.assemble import TraceState
from sinks.memory import MemoryStore

Mutate = Callable[[pytest.MonkeyPatch], None]


def _the_last_version_of_a_span_wins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pipeline.stages.assemble.supersedes", lambda _one, _other: True)


def _nothing_is_retired(patch: pytest.MonkeyPatch) -> None:
    rows = pipeline.model.version.result_rows

    def without(version: TraceVersion) -> tuple[ResultRow, ...]:
        return rows(msgspec.structs.replace(version, retired=()))

    patch.setattr("sinks.memory.result_rows", without)


def _nothing_is_retracted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pipeline.stages.turn._retractions", lambda *_: ())


def _a_judgment_counts_whatever_was_judged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pipeline.stages.grade._is_about", lambda judgment, run, *_: judgment.run_id == run.run_id)


def _nothing_is_read_back(patch: pytest.MonkeyPatch) -> None:
    async def forget(_self: TraceOwner, _now: int) -> int:
        return 0

    patch.setattr(TraceOwner, "recover", forget)


def _closed_traces_are_not_looked_up(patch: pytest.MonkeyPatch) -> None:
    async def trust(_self: TraceOwner, _unknown: Any) -> None:
        return None

    patch.setattr(TraceOwner, "_look_up", trust)


def _the_sample_is_drawn_by_chance(patch: pytest.MonkeyPatch) -> None:
    draws = itertools.cycle([0.1, 0.9, 0.4, 0.6, 0.2])
    patch.setattr("pipeline.model.ids.uniform", lambda *_: next(draws))


def _the_last_receipt_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pipeline.stages.assemble.min", lambda _kept, new: new, raising=False)


def _an_earlier_receipt_is_no_news(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TraceState, "is_open", property(lambda self: self.facts > self.graded_facts))


def _an_earlier_receipt_is_not_read_back(patch: pytest.MonkeyPatch) -> None:
    def counted(self: MemoryStore, key: TraceKey) -> bool:
        return len(self._received(key)) > (self.traces[key].facts if key in self.traces else 0)

    patch.setattr(MemoryStore, "_is_open", counted)


def _log_records_before_their_span_are_lost(patch: pytest.MonkeyPatch) -> None:
    add = TraceState.add_log_records

    def known_only(self: TraceState, records: Iterable[LogRecord]) -> None:
        add(self, [record for record in records if record.span_id in self._spans])

    patch.setattr(TraceState, "add_log_records", known_only)


def _log_records_of_a_read_span_change_nothing(patch: pytest.MonkeyPatch) -> None:
    add = TraceState.add_log_records

    def unread(self: TraceState, records: Iterable[LogRecord]) -> None:
        steps, groups = dict(self._steps), self._groups
        add(self, records)
        self._steps, self._groups = steps, groups

    patch.setattr(TraceState, "add_log_records", unread)


def _log_records_stand_as_they_came(patch: pytest.MonkeyPatch) -> None:
    def as_they_came(span: Span, records: Iterable[LogRecord]) -> Span:
        return msgspec.structs.replace(span, events=(*span.events, *map(as_event, records)))

    patch.setattr("pipeline.stages.assemble.beside", as_they_came)


def _log_records_are_no_facts(patch: pytest.MonkeyPatch) -> None:
    facts = property(lambda self: sum(kind is not LogRecord for kind, *_ in self._receipts))
    patch.setattr(TraceState, "facts", facts)


def _log_records_are_not_read_back(patch: pytest.MonkeyPatch) -> None:
    load = MemoryStore._load
    patch.setattr(MemoryStore, "_load", lambda self, key: msgspec.structs.replace(load(self, key), log_records=()))


anything = facts()


def silent(parent: int | None) -> Span:
    return span(0, 0, parent, name="chat m", **{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})


logged: st.SearchStrategy[list[Record]] = st.builds(
    lambda parent, some: [silent(parent), *some],
    st.sampled_from([None, 50]),  # below a span that never comes it is waited for, and read before it is over
    log_records(0),
)
"""A model call that says nothing itself, and what was logged for it: what breaks log records is found there sooner than anywhere."""
again = received_again()
MUTANTS: list[tuple[Mutate, st.SearchStrategy[list[Record]]]] = [
    (_the_last_version_of_a_span_wins, anything),
    (_nothing_is_retired, anything),
    (_nothing_is_retracted, anything),
    (_a_judgment_counts_whatever_was_judged, anything),
    (_nothing_is_read_back, anything),
    (_closed_traces_are_not_looked_up, anything),
    (_the_sample_is_drawn_by_chance, anything),
    (_the_last_receipt_counts, again),
    (_an_earlier_receipt_is_no_news, again),
    (_log_records_before_their_span_are_lost, anything),
    (_log_records_of_a_read_span_change_nothing, logged),
    (_log_records_stand_as_they_came, logged),
    (_log_records_are_no_facts, logged),
    (_log_records_are_not_read_back, logged),
]


@pytest.mark.parametrize(
    ("mutate", "records"), MUTANTS, ids=[mutate.__name__.strip("_").replace("_", " ") for mutate, _ in MUTANTS]
)
def test_a_broken_product_breaks_the_law(
    mutate: Mutate, records: st.SearchStrategy[list[Record]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def law(data: st.DataObject) -> None:
        drawn = data.draw(records)
        schedule = data.draw(schedules(len(drawn)))
        assert_schedule_changes_nothing(drawn, schedule)
        assert_accounting(run_world(GRADING, drawn, schedule))

    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        searched(law, 1500)()


# Owners that come and go


def _records_are_acknowledged_before_they_are_stored(patch: pytest.MonkeyPatch) -> None:
    take = Assembling.take

    async def early(self: Assembling, incoming: Sequence[Incoming]) -> None:
        for one in incoming:
            self._acknowledge(one.partition, one.offset)
        acknowledge, self._acknowledge = self._acknowledge, lambda *_: None
        await take(self, incoming)
        self._acknowledge = acknowledge

    patch.setattr(Assembling, "take", early)


def _records_are_acknowledged_and_only_folded(patch: pytest.MonkeyPatch) -> None:
    async def trust(*_: Any) -> None:
        return None

    patch.setattr("pipeline.runtime.assembling.store_facts", trust)


def _the_last_write_wins(patch: pytest.MonkeyPatch) -> None:
    write = MemoryStore.write

    async def last(self: MemoryStore, versions: Sequence[TraceVersion]) -> None:
        for version in versions:
            self.traces.pop((version.project, version.trace_id), None)
            for row in pipeline.model.version.result_rows(version):
                self.results.pop((row.project, row.key), None)
                self.runs.pop((row.project, row.trace_id, row.key.run_id), None)
        await write(self, versions)

    patch.setattr(MemoryStore, "write", last)


def _runs_that_nobody_retracted_are_not_swept_up(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: TraceOwner, _times: Any) -> None:
        return None

    patch.setattr(TraceOwner, "sweep", nothing)


def _any_ownership(data: st.DataObject) -> None:
    records = data.draw(facts())
    partitions = data.draw(st.integers(1, 4))
    assert_ownership_changes_nothing(records, partitions, data.draw(group_schedules(len(records), partitions)))


any_ownership = searched(_any_ownership, 400)


@pytest.mark.parametrize(
    ("mutate", "law"),
    [
        (_nothing_is_read_back, any_ownership),
        (_closed_traces_are_not_looked_up, any_ownership),
        (_records_are_acknowledged_before_they_are_stored, any_ownership),
        (_records_are_acknowledged_and_only_folded, any_ownership),
        (_an_earlier_receipt_is_not_read_back, assert_an_earlier_receipt_moves_a_run),
        (_the_last_write_wins, assert_an_old_version_counts_less),
        (_runs_that_nobody_retracted_are_not_swept_up, assert_a_run_that_never_was_is_retracted),
    ],
    ids=lambda one: one.__name__.strip("_").replace("_", " "),
)
def test_owners_that_are_broken_break_the_law(mutate: Mutate, law: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        law()
