"""What destinations are told, and when they are told again."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic import SecretStr, ValidationError

from pipeline.model.run import Cohort
from pipeline.model.time import HOUR, MINUTE, SECOND
from pipeline.model.window import Notification, Transition, Trip
from pipeline.stages.alert import NEVER, AlertSettings, confirmed, destinations, notifications, postponed, refused
from pipeline.stages.gate import HardGate

TRIP = Trip(
    project="shop",
    gate="verdicts",
    kind="floor",
    cohort=Cohort("refunds", "1", "production"),
    trip_id="ab" * 16,
    transition=Transition.FIRED,
    at_ns=1_790_000_400 * SECOND,
    contract="c1",
    dimension="verdict",
    window_ns=1_790_000_040 * SECOND,
    value=0.0,
    threshold=0.8,
    why="rate 0 is below 0.8",
)
URL = "https://alerts.example.com/hooks/s3cret"


def test_a_trip_is_told_to_each_destination_under_a_key_of_its_own() -> None:
    pager, chat = notifications(TRIP, ("pager", "chat"))
    assert (pager.destination, chat.destination) == ("pager", "chat")
    assert pager.idempotency_key != chat.idempotency_key
    [cleared] = notifications(replace(TRIP, transition=Transition.CLEARED), ("pager",))
    assert cleared.idempotency_key not in (pager.idempotency_key, chat.idempotency_key)
    assert (pager.due_ns, pager.confirmed_ns, pager.attempts) == (TRIP.at_ns, 0, 0)
    assert pager.agent == chat.agent == TRIP.cohort.agent


def test_a_run_that_joins_an_incident_is_told_to_nobody() -> None:
    assert notifications(replace(TRIP, transition=Transition.RUN, run_id="r1"), ("pager",)) == ()


def test_the_body_says_what_happened() -> None:
    [sent] = notifications(TRIP, ("pager",), {"scoreboard": "http://localhost/"})
    assert json.loads(sent.body) == {
        "idempotency_key": sent.idempotency_key,
        "project": "shop",
        "trip_id": "ab" * 16,
        "transition": "fired",
        "at": "2026-09-21T14:20:00+00:00",
        "gate": "verdicts",
        "kind": "floor",
        "cohort": {"agent": "refunds", "version": "1", "environment": "production"},
        "contract": "c1",
        "dimension": "verdict",
        "value": 0.0,
        "threshold": 0.8,
        "window": "2026-09-21T14:14:00+00:00",
        "run_id": None,
        "why": "rate 0 is below 0.8",
        "links": {"scoreboard": "http://localhost/"},
    }


def test_the_body_depends_on_nothing_that_changes_later() -> None:
    assert notifications(TRIP, ("pager",)) == notifications(replace(TRIP, retracted=True), ("pager",))


def test_a_gate_notifies_every_alert_or_those_it_names() -> None:
    alerts = [AlertSettings(name=name, webhook=SecretStr(URL)) for name in ("pager", "chat")]
    gates = [HardGate(name="a", kind="hard", notify=notify) for notify in (None, ("chat",), ())]
    assert [destinations(gate, alerts) for gate in gates] == [("pager", "chat"), ("chat",), ()]


def due(attempts: int = 0) -> Notification:
    return Notification("shop", "ab" * 16, Transition.FIRED, "pager", "{}", due_ns=HOUR, attempts=attempts)


def test_what_was_taken_is_confirmed() -> None:
    taken = confirmed(postponed(due(), "answered 500", HOUR), 2 * HOUR)
    assert (taken.confirmed_ns, taken.attempts, taken.last_error) == (2 * HOUR, 2, "")


def test_what_failed_is_tried_again_ever_more_rarely_and_without_end() -> None:
    waits = [postponed(due(attempts), "answered 500", HOUR).due_ns - HOUR for attempts in (0, 1, 2, 8, 9, 10_000)]
    assert waits == [SECOND, 2 * SECOND, 4 * SECOND, 256 * SECOND, 5 * MINUTE, 5 * MINUTE]


def test_a_receiver_that_asks_for_time_gets_it_within_reason() -> None:
    assert postponed(due(), "", HOUR, 90.0).due_ns == HOUR + 90 * SECOND
    assert postponed(due(), "", HOUR, 0.0).due_ns == HOUR + SECOND
    assert postponed(due(), "", HOUR, 1e9).due_ns == 2 * HOUR


def test_what_was_refused_is_kept_with_the_reason_and_never_due_again() -> None:
    kept = refused(due(), "answered 400" * 100)
    assert (kept.confirmed_ns, kept.attempts, kept.due_ns) == (0, 1, NEVER)
    assert kept.last_error.startswith("answered 400")
    assert len(kept.last_error) == 500


@given(st.integers(0, 100), st.floats(0, 1e12) | st.none())
def test_a_notification_keeps_its_key_and_body_whatever_happens_to_it(attempts: int, retry_after: float | None) -> None:
    before = due(attempts)
    for after in (confirmed(before, HOUR), postponed(before, "x", HOUR, retry_after), refused(before, "x")):
        assert (after.idempotency_key, after.body) == (before.idempotency_key, before.body)


def test_secrets_of_a_destination_are_not_shown() -> None:
    alert = AlertSettings(name="pager", webhook=SecretStr(URL), headers={"Authorization": SecretStr("Bearer t0ken")})
    assert "s3cret" not in repr(alert)
    assert "t0ken" not in repr(alert)


@pytest.mark.parametrize(
    "url",
    ["", "alerts.example.com/s3cret", "ftp://host/s3cret", "https:///s3cret", "https://host:port/s3cret", "https://host/s3 cret"],
)
def test_what_is_no_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValidationError, match="write it whole, such as") as refusal:
        AlertSettings.model_validate({"name": "pager", "webhook": url})
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize(("name", "value"), [("X Y", "1"), ("", "1"), ("X", "1\r\nY: 2"), ("idempotency-key", "1")])
def test_headers_that_cannot_be_sent_are_refused(name: str, value: str) -> None:
    with pytest.raises(ValidationError):
        AlertSettings.model_validate({"name": "pager", "webhook": URL, "headers": {name: value}})
