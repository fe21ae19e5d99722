"""The agenda of one partition: every trace is looked at when it is due, once, the longest due first; gates believe no more than that."""

from itertools import islice

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pipeline.model.version import TraceKey
from pipeline.runtime.agenda import Agenda

KEYS: list[TraceKey] = [("default", name) for name in "abcde"]
keys = st.sampled_from(KEYS)
moments = st.integers(0, 30)
A, B, C, *_ = KEYS


class AgendaAgainstADictionary(RuleBasedStateMachine):
    """Any sequence of calls, beside a dictionary that says the same without a heap."""

    @initialize(rest=st.sampled_from([0, 0, 5]))
    def begin(self, rest: int) -> None:
        self.agenda = Agenda()
        self.wakes: dict[TraceKey, int] = {}
        self.in_hand: list[int] = []
        self.not_before = 0
        self.resting = rest
        if rest:
            self.agenda.rest(rest)

    @rule(key=keys, at=moments, sooner_only=st.booleans())
    def wake(self, key: TraceKey, at: int, sooner_only: bool) -> None:
        self.agenda.wake(key, at, sooner_only=sooner_only)
        self.wakes[key] = min(at, self.wakes.get(key, at)) if sooner_only else at

    @rule(key=keys)
    def forget(self, key: TraceKey) -> None:
        self.agenda.forget(key)
        self.wakes.pop(key, None)

    @rule(now=moments, count=st.integers(1, 6))
    def due(self, now: int, count: int) -> None:
        taken = list(islice(self.agenda.due(now), count))
        if self.resting:
            self.not_before, self.resting = now + self.resting, 0
        expected = sorted((at, key) for key, at in self.wakes.items() if at <= now) if now >= self.not_before else []
        assert taken == [key for _, key in expected[:count]]
        for at, key in expected[:count]:
            del self.wakes[key]
            self.in_hand.append(at)

    @rule()
    def done(self) -> None:
        self.agenda.done()
        self.in_hand.clear()

    @rule(now=moments)
    def believe(self, now: int) -> None:
        assert self.agenda.done_until(now) == min([now, *self.in_hand, *self.wakes.values()])

    @invariant()
    def both_say_the_same(self) -> None:
        assert len(self.agenda) == len(self.wakes)
        assert {key for key in KEYS if key in self.agenda} == self.wakes.keys()
        assert (
            self.agenda.next_wake == max(min(self.wakes.values()), self.not_before)
            if self.wakes
            else self.agenda.next_wake is None
        )


TestAgendaAgainstADictionary = AgendaAgainstADictionary.TestCase


def test_an_empty_agenda_awaits_nothing() -> None:
    agenda = Agenda()
    assert agenda.next_wake is None
    assert list(agenda.due(10**18)) == []
    assert agenda.done_until(7) == 7


def test_a_rest_begins_with_the_first_look_at_the_clock_and_not_before() -> None:
    agenda = Agenda()
    agenda.wake(A, 3)
    agenda.rest(10)
    assert list(agenda.due(100)) == []
    assert agenda.next_wake == 110
    assert list(agenda.due(109)) == []
    assert list(agenda.due(110)) == [A]
    agenda.wake(B, 111)
    assert list(agenda.due(111)) == [B], "it rests once"


def test_while_it_rests_gates_believe_nothing_that_is_due() -> None:
    agenda = Agenda()
    agenda.wake(A, 3)
    agenda.rest(10)
    assert list(agenda.due(100)) == []
    assert agenda.done_until(105) == 3


def test_what_is_in_hand_is_not_done_until_it_is_written() -> None:
    agenda = Agenda()
    for key, at in ((A, 5), (B, 4), (C, 90)):
        agenda.wake(key, at)
    assert list(agenda.due(50)) == [B, A]
    agenda.wake(A, 70)
    assert agenda.done_until(60) == 4
    agenda.done()
    assert agenda.done_until(60) == 60
    assert agenda.done_until(80) == 70


def test_what_is_woken_again_while_it_is_being_taken_out_comes_again() -> None:
    agenda = Agenda()
    agenda.wake(A, 1)
    due = agenda.due(5)
    assert next(due) == A
    agenda.wake(A, 2)
    assert list(due) == [A]


def test_a_later_wake_replaces_a_sooner_one_unless_only_sooner_ones_count() -> None:
    agenda = Agenda()
    agenda.wake(A, 5)
    agenda.wake(A, 9, sooner_only=True)
    assert agenda.next_wake == 5
    agenda.wake(A, 9)
    assert agenda.next_wake == 9
    agenda.wake(A, 2, sooner_only=True)
    assert agenda.next_wake == 2
    agenda.wake(B, 1, sooner_only=True)
    assert list(agenda.due(20)) == [B, A]
