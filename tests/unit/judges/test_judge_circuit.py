"""When an endpoint may be called: a circuit, a pace, a backoff. All of it is a function of what happened and of the time."""

import pytest
from builders import T0
from hypothesis import given
from hypothesis import strategies as some

from pipeline.judges.backoff import GREATEST_S, backoff
from pipeline.judges.circuit import FAILURES, MOST_OPEN_S, OPEN_S, PROBE_EVERY, Circuit
from pipeline.judges.rate import Rate
from pipeline.model.time import MINUTE, SECOND

KEY = "http://judge"


def broken(failures: int = FAILURES) -> Circuit:
    circuit = Circuit()
    for _ in range(failures):
        circuit = circuit.failed(T0, KEY)
    return circuit


def test_failures_in_a_row_open_it_and_an_answer_between_them_does_not_count() -> None:
    assert broken(FAILURES - 1).free_at(T0) == T0
    assert broken().free_at(T0) > T0
    mended = broken(FAILURES - 1).answered().failed(T0, KEY)
    assert mended.free_at(T0) == T0


def test_it_opens_once_for_all_calls_that_were_in_flight() -> None:
    assert broken(FAILURES + 20).shut_until == broken().shut_until


def test_after_a_while_one_call_goes_through_and_shows_whether_all_may() -> None:
    later = broken().shut_until
    assert T0 + OPEN_S / 2 * SECOND <= later <= T0 + OPEN_S * SECOND
    probe = broken().begun()
    assert probe.free_at(later) > later, "only one"
    assert probe.answered() == Circuit()
    again = probe.failed(later, KEY)
    assert again.is_open
    assert later + OPEN_S * SECOND <= again.shut_until <= later + 2 * OPEN_S * SECOND, "each time for longer"
    assert probe.abandoned().free_at(later) == later, "a call that told nothing leaves it to the next"


def test_it_is_never_open_for_longer_than_a_minute_by_itself() -> None:
    circuit = broken()
    for _ in range(50):
        now = circuit.shut_until
        circuit = circuit.begun().failed(now, KEY)
        assert now < circuit.shut_until <= now + MOST_OPEN_S * SECOND


def test_what_the_endpoint_asks_to_wait_all_calls_wait() -> None:
    circuit = Circuit().failed(T0, KEY, retry_after=3.0)
    assert circuit.free_at(T0) == T0 + 3 * SECOND
    assert circuit.answered().free_at(T0) == T0 + 3 * SECOND, "a call that was in flight before says nothing about it"
    assert Circuit().failed(T0, KEY, retry_after=1e9).free_at(T0) == T0 + 15 * MINUTE, "but no longer than anybody waits"


def test_what_a_person_must_mend_pauses_it_with_the_reason() -> None:
    circuit = Circuit().refused(T0, "the account is out of money")
    assert (circuit.is_open, circuit.paused) == (True, "the account is out of money")
    assert circuit.free_at(T0) == T0 + PROBE_EVERY
    assert circuit.begun().answered() == Circuit()
    assert circuit.begun().failed(T0 + MINUTE, KEY).paused == "", "what time may mend is no pause"


@given(
    some.lists(some.tuples(some.sampled_from(["failed", "answered", "refused", "abandoned"]), some.integers(0, 30)), max_size=60)
)
def test_it_never_stays_shut_for_ever(events: list[tuple[str, int]]) -> None:
    circuit, now = Circuit(), T0
    for what, seconds in events:
        now += seconds * SECOND
        if circuit.free_at(now) == now:
            circuit = circuit.begun()
        match what:
            case "failed":
                circuit = circuit.failed(now, KEY)
            case "answered":
                circuit = circuit.answered()
            case "refused":
                circuit = circuit.refused(now, "key")
            case _:
                circuit = circuit.abandoned()
    later = now + MINUTE
    assert circuit.abandoned().free_at(later) == later


@pytest.mark.parametrize(("failures", "most"), [(1, 0.2), (2, 0.4), (3, 0.8), (8, 25.6), (9, GREATEST_S), (500, GREATEST_S)])
def test_a_backoff_doubles_and_is_at_least_half(failures: int, most: float) -> None:
    assert most / 2 <= backoff(failures, "run") <= most


def test_a_backoff_is_the_same_for_the_same_and_differs_between_questions() -> None:
    assert backoff(3, "one") == backoff(3, "one")
    waits = {round(backoff(3, f"run-{number}"), 6) for number in range(100)}
    assert len(waits) > 90
    assert 0.45 < sum(waits) / len(waits) / 0.8 - 0.25 < 0.55, "half to all, evenly"


def test_what_an_endpoint_asks_for_is_waited_in_full() -> None:
    for number in range(100):
        assert 17.0 <= backoff(1, f"run-{number}", 17.0) <= 18.7


@given(some.integers(1, 600), some.lists(some.integers(0, 3 * SECOND), min_size=1, max_size=300))
def test_no_minute_holds_more_than_the_limit_and_a_second_of_it(limit: int, pauses: list[int]) -> None:
    rate, now, starts = Rate(limit), T0, []
    for pause in pauses:
        now += pause
        rate, at = rate.take(1, now)
        assert at >= now
        starts.append(at)
    for at in starts:
        assert sum(at <= other < at + MINUTE for other in starts) <= limit + limit / 60 + 1


def test_calls_are_spaced_evenly_and_without_a_limit_not_at_all() -> None:
    rate, waits = Rate(60), []
    for _ in range(4):
        rate, at = rate.take(1, T0)
        waits.append((at - T0) / SECOND)
    assert waits == [0, 0, 1, 2], "a second's worth at once, then one a second"
    assert Rate(None).take(1e9, T0) == (Rate(None), T0)


def test_tokens_that_were_not_taken_after_all_are_given_back() -> None:
    rate, _ = Rate(6000).take(3000, T0)
    _, late = rate.take(1, T0)
    assert late == T0 + 29 * SECOND
    _, soon = rate.corrected(-2000).take(1, T0)
    assert soon == T0 + 9 * SECOND
