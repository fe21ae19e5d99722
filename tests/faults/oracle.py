"""Oracle: what a cluster must have stored, worked out from the ledger and, by the pure stages, from the stored facts.

No broker, no worker and no clock takes part: every step from facts to results, minutes, windows and trips is made again here.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from math import isclose
from typing import Any, Final

import msgspec
from faults.ledger import GATE, PAGER, PROJECT, REFUSED, Ledger, attributes, span_id, trip_of

from collectors.dialects import read
from pipeline.apps.quality_commands import evaluations_of
from pipeline.config.grading import grading_of
from pipeline.config.store import StoreSettings
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model.evaluation import evaluation_id
from pipeline.model.result import Outcome
from pipeline.model.run import Trouble
from pipeline.model.time import MINUTE
from pipeline.model.version import Spent, StoredTrace, TraceVersion
from pipeline.model.window import Series, Sums, Transition
from pipeline.stages.assemble import TraceState
from pipeline.stages.gate import lengths_of
from pipeline.stages.turn import Assembly, settle, turn
from pipeline.stages.window import MinuteRow, fold, total, window, windows_of
from sinks.clickhouse.connection import Database, Row, connect
from sinks.clickhouse.gate_rows import minute_row, window_row
from sinks.clickhouse.result_rows import results_of_trace
from sinks.clickhouse.rows import minute_ns, ns
from sinks.clickhouse.run_rows import cohort_of, run_rows
from sinks.clickhouse.store import Store

FAR: Final = 2**62
WINDOW: Final = 5 * MINUTE
MANY: Final = 1_000_000
EVALUATED: Final = 50
"""Quality scores that are made again."""
NOT_CONTENT: Final = frozenset({"amended", "requested_at", "deadline_at", "version", "revision"})
"""When something was asked for, or found late, how it is numbered and by which commit it was made, is no part of what is said (promise 4)."""
_RESULTS: Final = "SELECT * FROM results FINAL WHERE project = {project:String} AND series = 'live'"
_REFUSED: Final = "SELECT count() AS spans FROM spans WHERE span_id = {span:String}"
_DEAD: Final = "SELECT origin, reason FROM dead_letters FINAL"
_RUNS: Final = "SELECT * FROM runs FINAL WHERE project = {project:String}"
_MINUTES: Final = "SELECT * FROM minutes FINAL WHERE project = {project:String}"
_WINDOWS: Final = "SELECT * FROM windows FINAL WHERE project = {project:String}"


class Counts(msgspec.Struct, frozen=True):
    """What was looked at; every one above zero in a test that means something."""

    spans: int
    runs: int
    late: int
    results: int
    minutes: int
    windows: int
    trips: int
    alerts: int


@contextmanager
def _rows(settings: StoreSettings) -> Iterator[Database]:
    database = connect(settings, {})
    try:
        yield database
    finally:
        database.close()


async def check(settings: TracegradeSettings, ledger: Ledger, told: Mapping[str, Any]) -> Counts:
    """Hold all that the ledger and the stored facts ask for; called when nothing is under way any more.

    Raises:
        AssertionError: something was lost, doubled, or is not what follows from the facts.
    """
    store = Store.open(settings.store)
    try:
        with _rows(settings.store) as database:
            stored = await store.load([(PROJECT, trace_id) for trace_id in ledger.traces])
            _spans(stored, ledger)
            _refused(database, ledger)
            runs = database.query(_RUNS, {"project": PROJECT})
            results = database.query(_RESULTS, {"project": PROJECT})
            _runs(runs, ledger)
            await _shown(store, ledger)
            _sampled(runs, settings)
            _folded(stored, settings, runs, results)
            _checked(results, ledger)
            await _accounted(store, ledger)
            minutes = _minutes(database, results)
            windows = _windows(database, minutes, settings)
            await _evaluated(store, minutes, settings)
            trips = await _trips(store, ledger)
            await _alerted(store, ledger, told)
            misplaced, stale = await store.misplaced(), await store.stale_minutes()
            assert not misplaced, f"what is stored counts at places that were left: {misplaced}"
            assert not stale, f"what is stored differs from what its minutes were added up from: {stale}"
    finally:
        await store.close()
    return Counts(ledger.spans, len(ledger.traces), ledger.late, len(results), len(minutes), windows, trips, len(told))


def _spans(stored: Mapping[tuple[str, str], StoredTrace], ledger: Ledger) -> None:
    """Every acknowledged span is stored as it was sent, and no other but one that was sent without an answer (I1)."""
    lost: list[tuple[str, int]] = []
    for sent in ledger.traces.values():
        found = {span.span_id: span for span in stored[PROJECT, sent.trace_id].spans}
        lost += [(sent.trace_id, number) for number in sorted(sent.acknowledged) if span_id(number) not in found]
        nobodys = found.keys() - {span_id(number) for number in sent.acknowledged | sent.unknown}
        assert not nobodys, f"nobody sent {sorted(nobodys)[:3]} of {sent.trace_id}"
        assert len(found) == len(stored[PROJECT, sent.trace_id].spans), f"a span of {sent.trace_id} is stored in two versions"
        wrong = [one for one in found.values() if one.attributes != attributes(sent, int(one.span_id, 16))]
        assert not wrong, f"not stored as sent: {wrong[0]}"
    assert not lost, f"{len(lost)} acknowledged spans are not stored: {lost[:5]}"


def _refused(database: Database, ledger: Ledger) -> None:
    """What was refused is not stored but as what it is, and what nobody can read is a dead letter, once (I1, I11)."""
    assert database.query(_REFUSED, {"span": REFUSED}) == [{"spans": 0}]
    dead = database.query(_DEAD)
    kept = [row for row in dead if row["origin"].startswith("receiver")]
    assert len(kept) <= ledger.rejected + ledger.unanswered, f"{ledger.rejected} spans were refused, kept are {len(kept)}"
    assert len(dead) - len(kept) == ledger.poisons, f"{ledger.poisons} records were poison, dead letters are: {dead[:5]}"


def _runs(rows: Sequence[Row], ledger: Ledger) -> None:
    """Each trace is one live run, once, with one verdict and nothing outstanding."""
    live = [row for row in rows if row["state"] == "live"]
    found, expected = Counter(row["run_id"] for row in live), Counter(sent.run_id for sent in ledger.traces.values())
    assert found == expected, f"not one live run for each trace: too many {found - expected}, missing {expected - found}"
    undecided = [row["run_id"] for row in live if row["verdict"] is None or row["class"] == "pending"]
    assert not undecided, f"runs without a verdict: {undecided[:5]}"


async def _shown(store: Store, ledger: Ledger) -> None:
    """What the API shows is the same runs, each once (I2)."""
    board = await store.scoreboard(PROJECT, MANY)
    shown, sent = sorted(row.run_id for row in board), sorted(sent.run_id for sent in ledger.traces.values())
    assert shown == sent, f"what the scoreboard shows differs (expected, stored): {sent}, {shown}"


def _sampled(rows: Sequence[Row], settings: TracegradeSettings) -> None:
    """Whether a run is judged hangs on its trace and on nothing else: the formula again, by hand (I4)."""
    policy = settings.entries["default"].sampling
    for row in rows:
        if row["state"] == "live" and row["sampling_plan"].startswith("rate:"):
            assert row["sampled"] == (_draw(policy.salt, row["trace_id"]) < policy.rate), row["run_id"]
            assert row["inclusion_probability"] == policy.rate, row["run_id"]


def _draw(salt: str, trace_id: str) -> float:
    parts = [one.encode() for one in ("sample", salt, PROJECT, trace_id)]
    said = b"".join(len(one).to_bytes(8, "big") + one for one in parts)
    return int(blake2b(said, digest_size=8).hexdigest()[:13], 16) / 16**13


def _folded(
    stored: Mapping[tuple[str, str], StoredTrace], settings: TracegradeSettings, runs: Sequence[Row], results: Sequence[Row]
) -> None:
    """Runs and results are what a fold of the stored facts gives."""
    assembly = Assembly(read=read, settings=settings.assemble, grading_of=grading_of(settings))
    runs_of, results_of = _by(runs, "trace_id"), _by(results, "trace_id")
    for (_, trace_id), one in stored.items():
        version = _fold(one, assembly)
        live = [row for row in runs_of[trace_id] if row["state"] == "live"]
        _same(run_rows(version), live, ("run_id",))
        counting = [row for row in results_of[trace_id] if row["weight"] > 0]
        made = [row for row in results_of_trace(version) if row["weight"] > 0]
        _same(made, counting, ("run_id", "cohort_id", "minute", "dimension", "contract"))


def _fold(stored: StoredTrace, assembly: Assembly) -> TraceVersion:
    """One version of all facts; the second turn is the one of an owner that had asked for the judgments before."""
    state = TraceState.stored(msgspec.structs.replace(stored, graded_facts=0, runs=(), result_keys=frozenset()))
    made = turn(state, FAR, FAR, assembly).version
    assert made is not None, f"nothing follows from the facts of {stored.trace_id}"
    settle(state, made)
    return made


def _same(expected: Sequence[Row], found: Sequence[Row], key: tuple[str, ...]) -> None:
    """Equal rows by key, column by column; reals but for their last bits."""
    by_key = {tuple(row[name] for name in key): row for row in found}
    assert len(by_key) == len(found), "a key is there twice"
    keys = {tuple(row[name] for name in key) for row in expected}
    assert by_key.keys() == keys, (
        f"which rows there are differs (expected, stored): {keys - by_key.keys()}, {by_key.keys() - keys}"
    )
    for row in expected:
        stored = by_key[tuple(row[name] for name in key)]
        wrong = {
            name: (value, stored[name])
            for name, value in row.items()
            if name not in NOT_CONTENT and not _equal(value, stored[name])
        }
        assert not wrong, f"{[row[name] for name in key]} differs (expected, stored): {wrong}"


def _equal(expected: Any, stored: Any) -> bool:
    if isinstance(expected, float) and isinstance(stored, float):
        return isclose(expected, stored, rel_tol=1e-9, abs_tol=1e-12)
    return bool(expected == stored)


def _by(rows: Sequence[Row], name: str) -> defaultdict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[name]].append(row)
    return found


def _checked(results: Sequence[Row], ledger: Ledger) -> None:
    """What the checks say is what the ledger knows, without the product's own fold."""
    said = {(row["run_id"], row["dimension"]): row["outcome"] for row in results if row["weight"] > 0}
    for sent in ledger.traces.values():
        assert said[sent.run_id, "no_deletion"] == _outcome(failed=sent.fails), (
            f"{sent.trace_id}: {said[sent.run_id, 'no_deletion']}"
        )
        assert said[sent.run_id, "no_escalation"] == _outcome(failed=sent.is_late), f"{sent.trace_id} lost its late span"


def _outcome(*, failed: bool) -> str:
    return (Outcome.FAIL if failed else Outcome.PASS).value


async def _accounted(store: Store, ledger: Ledger) -> None:
    accounting = await store.accounting(PROJECT)
    assert accounting.pending == accounting.open_traces == accounting.not_an_agent_run == 0, accounting
    parts = accounting.judged + accounting.unsampled + sum(accounting.unresolved.values())
    assert accounting.received == parts == len(ledger.traces), accounting


def _minutes(database: Database, results: Sequence[Row]) -> dict[tuple[Series, int], Sums]:
    """Minutes are a fold of the rows that lie in them."""
    lying: defaultdict[tuple[Series, int], list[MinuteRow]] = defaultdict(list)
    for row in results:
        series = Series(PROJECT, cohort_of(row), row["dimension"], row["kind"], row["contract"])
        lying[series, minute_ns(row["minute"])].append(
            MinuteRow(
                Outcome(row["outcome"]) if row["outcome"] is not None else None,
                row["weight"],
                row["version"],
                ns(row["first_received_at"]),
                row["value"],
                row["lower"],
                row["upper"],
                Spent(row["duration_ns"], row["cost_usd"], Trouble(row["trouble"])) if row["trouble"] is not None else None,
            )
        )
    folded = {key: fold(rows) for key, rows in lying.items()}
    expected = [minute_row(series, at, sums) for (series, at), sums in folded.items()]
    _same(expected, database.query(_MINUTES, {"project": PROJECT}), ("cohort_id", "minute", "dimension", "contract"))
    return folded


def _windows(database: Database, minutes: Mapping[tuple[Series, int], Sums], settings: TracegradeSettings) -> int:
    """Windows are what their minutes add up to, and there is one for each that holds a minute."""
    expected = [
        window_row(window(series, start, length, total(inside)), amended=False)
        for length in {WINDOW, *lengths_of(settings.gates)}
        for series, start in {(series, start) for series, at in minutes for start in windows_of(at, length)}
        if (inside := [minutes[series, at] for at in range(start, start + length, MINUTE) if (series, at) in minutes])
    ]
    _same(
        expected,
        database.query(_WINDOWS, {"project": PROJECT}),
        ("cohort_id", "length_s", "window_start", "dimension", "contract"),
    )
    return len(expected)


async def _evaluated(store: Store, minutes: Mapping[tuple[Series, int], Sums], settings: TracegradeSettings) -> None:
    """Each window of a cohort has one quality score, and the latest of them come out again from stored results."""
    lengths = {WINDOW, *lengths_of(settings.gates)}
    expected = {
        evaluation_id(series.project, series.cohort.id, length, start + length)
        for length in lengths
        for series, at in minutes
        for start in windows_of(at, length)
    }
    found = await store.evaluations.named(PROJECT, "", MANY)
    assert Counter(one.id for one in found) == Counter(expected), "not one evaluation for each window"
    known = evaluations_of(settings, store)
    for one in await known.latest(PROJECT, "", EVALUATED):
        again = await known.again(PROJECT, one.id)
        assert again.equal, f"an evaluation does not come out again: {again}"


async def _trips(store: Store, ledger: Ledger) -> int:
    """An incident for each agent with a failing run, opened by one run, and every failing run in exactly one."""
    trips = [trip for trip in await store.trips() if trip.project == PROJECT and trip.gate == GATE]
    failing = [sent for sent in ledger.traces.values() if sent.fails and sent.acknowledged]
    found = sorted((trip.gate, trip.trip_id, trip.run_id) for trip in trips)
    expected = sorted((GATE, trip_of(sent.agent), sent.run_id) for sent in failing)
    assert found == expected, f"trips of {len(failing)} failing runs are not theirs, once each: {trips}"
    fired = sorted(trip.trip_id for trip in trips if trip.transition is Transition.FIRED)
    assert fired == sorted({trip_of(sent.agent) for sent in failing}), f"an incident fired never or twice: {fired}"
    return len(trips)


async def _alerted(store: Store, ledger: Ledger, told: Mapping[str, Any]) -> None:
    """Every notification that is due arrived under its key, nothing else did, and the store knows that all are confirmed."""
    assert set(told) == ledger.due(), f"missing {ledger.due() - set(told)}, not due {set(told) - ledger.due()}"
    noted = [one for one in await store.notifications() if one.project == PROJECT]
    assert {one.idempotency_key for one in noted} == ledger.due(), f"what is due differs from what is noted: {noted}"
    assert all(one.confirmed_ns and one.destination == PAGER for one in noted), f"not all were confirmed: {noted}"
