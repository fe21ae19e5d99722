"""Rows of what runs add up to: minutes, windows, gate states, trips, notifications, golden cases. Each as it is stored, and back."""

from typing import Final

import msgspec

from pipeline.model.golden import GoldenCase, GoldenMember
from pipeline.model.time import SECOND
from pipeline.model.window import GateState, GateStatus, Notification, Series, Sums, Transition, Trip, Window
from sinks.clickhouse.connection import Row
from sinks.clickhouse.rows import instant, instant_or_none, minute, minute_ns, ns, ns_or_zero
from sinks.clickhouse.run_rows import cohort_columns, cohort_of
from sinks.clickhouse.text import to_json

_ADDED: Final = tuple(name for name in Sums.__struct_fields__ if name != "first_received_ns")
"""Columns of ``minutes`` that are called like the fields of Sums."""
_PUBLISHED: Final = ("n", "decided", "pending", "passed", "grader_errors")
"""Of them, those that are published with a window."""
_CONFIRMED: Final = 2**63
_case = msgspec.json.Decoder(GoldenCase).decode


def series_columns(series: Series) -> Row:
    """Return the columns that name a series."""
    return {
        "project": series.project,
        **cohort_columns(series.cohort),
        "dimension": series.dimension,
        "kind": series.kind,
        "contract": series.contract,
    }


def series_of(row: Row) -> Series:
    """Return the series of a row."""
    return Series(
        project=row["project"],
        cohort=cohort_of(row),
        dimension=row["dimension"],
        kind=row["kind"],
        contract=row["contract"],
    )


def _grown(sums: Sums) -> int:
    """The version of what was added up: the count of rows and the sum of their versions only grow (design section 5)."""
    return sums.rows + sums.fingerprint


def minute_row(series: Series, at_ns: int, sums: Sums) -> Row:
    """Return a minute of a series as it is stored."""
    return {
        **series_columns(series),
        "minute": minute(at_ns),
        **{name: getattr(sums, name) for name in _ADDED},
        "first_received_at": instant(sums.first_received_ns),
        "version": _grown(sums),
    }


def sums_of(row: Row) -> Sums:
    """Return what a minute holds."""
    return Sums(**{name: row[name] for name in _ADDED}, first_received_ns=ns(row["first_received_at"]))


def window_row(window: Window, amended: bool) -> Row:
    """Return a window as it is stored. ``amended``: it was final before."""
    return {
        **series_columns(window.series),
        "length_s": window.length_ns // SECOND,
        "window_start": minute(window.start_ns),
        "n": window.sums.n,
        "decided": window.sums.decided,
        "pending": window.sums.pending,
        "passed": window.sums.passed,
        "grader_errors": window.sums.grader_errors,
        "n_effective": window.n_effective,
        **{name: getattr(window, name) for name in _ESTIMATES},
        "first_received_at": instant(window.sums.first_received_ns),
        "amended": amended,
        "version": _grown(window.sums),
    }


_ESTIMATES: Final = (
    "coverage",
    "mean",
    "mean_low",
    "mean_high",
    "rate",
    "rate_low",
    "rate_high",
    "rate_if_undecided_fail",
    "rate_if_undecided_pass",
)


def window_of(row: Row) -> Window:
    """Return a published window. Of its sums only the counts and the first receipt are published with it; the rest is 0."""
    return Window(
        series=series_of(row),
        start_ns=minute_ns(row["window_start"]),
        length_ns=row["length_s"] * SECOND,
        sums=Sums(**{name: row[name] for name in _PUBLISHED}, first_received_ns=ns(row["first_received_at"])),
        n_effective=row["n_effective"],
        **{name: row[name] for name in _ESTIMATES},
    )


def gate_state_row(state: GateState) -> Row:
    """Return a gate's state as it is stored."""
    return {
        "project": state.project,
        "gate": state.gate,
        **cohort_columns(state.cohort),
        "contract": state.contract,
        "status": state.status,
        "trip_id": state.trip_id,
        "clears": state.clears,
        "runs": state.runs,
        "last_window": minute(state.last_window_ns),
        "last_failure_at": instant(state.last_failure_ns),
        "streak": state.streak,
        "memory": list(state.memory),
        "why": state.why,
        "version": state.version,
    }


def gate_state_of(row: Row) -> GateState:
    """Return the gate state of a row."""
    return GateState(
        project=row["project"],
        gate=row["gate"],
        cohort=cohort_of(row),
        contract=row["contract"],
        status=GateStatus(row["status"]),
        trip_id=row["trip_id"],
        clears=row["clears"],
        runs=row["runs"],
        last_window_ns=minute_ns(row["last_window"]),
        last_failure_ns=ns(row["last_failure_at"]),
        streak=row["streak"],
        memory=tuple(row["memory"]),
        why=row["why"],
        version=row["version"],
    )


def trip_row(trip: Trip) -> Row:
    """Return a transition of a gate as it is stored."""
    return {
        "project": trip.project,
        "gate": trip.gate,
        **cohort_columns(trip.cohort),
        "trip_id": trip.trip_id,
        "transition": trip.transition,
        "run_id": trip.run_id,
        "kind": trip.kind,
        "at": instant(trip.at_ns),
        "contract": trip.contract,
        "dimension": trip.dimension,
        "window_start": minute(trip.window_ns),
        "value": trip.value,
        "threshold": trip.threshold,
        "why": trip.why,
        "retracted": trip.retracted,
    }


def trip_of(row: Row) -> Trip:
    """Return the transition of a row."""
    return Trip(
        project=row["project"],
        gate=row["gate"],
        kind=row["kind"],
        cohort=cohort_of(row),
        trip_id=row["trip_id"],
        transition=Transition(row["transition"]),
        at_ns=ns(row["at"]),
        contract=row["contract"],
        dimension=row["dimension"],
        window_ns=minute_ns(row["window_start"]),
        run_id=row["run_id"],
        value=row["value"],
        threshold=row["threshold"],
        why=row["why"],
        retracted=row["retracted"],
    )


def notification_row(notification: Notification) -> Row:
    """Return a notification as it is stored. Confirmed supersedes unconfirmed, and of either the one with more attempts."""
    return {
        "project": notification.project,
        "trip_id": notification.trip_id,
        "transition": notification.transition,
        "destination": notification.destination,
        "idempotency_key": notification.idempotency_key,
        "body": notification.body,
        "due_at": instant(notification.due_ns),
        "confirmed_at": instant_or_none(notification.confirmed_ns),
        "attempts": notification.attempts,
        "last_error": notification.last_error,
        "agent": notification.agent,
        "version": notification.attempts + (_CONFIRMED if notification.confirmed_ns else 0),
    }


def notification_of(row: Row) -> Notification:
    """Return the notification of a row."""
    return Notification(
        project=row["project"],
        trip_id=row["trip_id"],
        transition=Transition(row["transition"]),
        destination=row["destination"],
        body=row["body"],
        due_ns=ns(row["due_at"]),
        confirmed_ns=ns_or_zero(row["confirmed_at"]),
        attempts=row["attempts"],
        last_error=row["last_error"],
        agent=row["agent"],
    )


def golden_case_row(case: GoldenCase) -> Row:
    """Return a golden case as it is stored."""
    return {
        "project": case.project,
        "case_id": case.id,
        "agent": case.agent,
        "state": case.state,
        "split": case.split,
        "representative": case.representative,
        "runs": case.runs,
        "body": to_json(case),
        "version": case.version,
    }


def golden_case_of(row: Row) -> GoldenCase:
    """Return the golden case of a row."""
    return _case(row["body"])


def golden_member_row(member: GoldenMember) -> Row:
    """Return a run's membership of a case as it is stored."""
    return msgspec.structs.asdict(member)


def golden_member_of(row: Row) -> GoldenMember:
    """Return the membership of a row."""
    return GoldenMember(**row)
