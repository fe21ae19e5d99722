"""Temporary trouble is waited out, poison is buried with its reason, and what a person must fix is raised (promise 7)."""

import asyncio
from collections import deque
from typing import Any

import pytest

from pipeline.errors import ConfigurationError, PermanentError, TemporaryError
from pipeline.runtime.clock import ManualClock, SystemClock
from pipeline.runtime.guard import or_dead_letter, until_it_works


class Attempt:
    """An attempt that fails as planned, and then works."""

    def __init__(self, *trouble: Exception) -> None:
        self.trouble = deque(trouble)
        self.made = 0

    async def __call__(self) -> int:
        self.made += 1
        if self.trouble:
            raise self.trouble.popleft()
        return self.made


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    taken: list[float] = []
    turn = asyncio.sleep

    async def pause(seconds: float, result: Any = None) -> Any:
        taken.append(seconds)
        return await turn(0, result)

    monkeypatch.setattr(asyncio, "sleep", pause)
    return taken


async def test_an_attempt_is_repeated_with_growing_pauses_until_it_works(pauses: list[float]) -> None:
    attempt = Attempt(*[TemporaryError("busy")] * 9)
    assert await until_it_works("write", attempt) == 10
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]


async def test_who_says_when_to_come_back_is_believed(pauses: list[float]) -> None:
    assert await until_it_works("write", Attempt(TemporaryError("busy", retry_after=3.5))) == 2
    assert pauses == [3.5]


@pytest.mark.parametrize("error", [PermanentError("no"), ConfigurationError("no such folder"), RuntimeError("a bug")])
async def test_anything_else_is_raised_at_once(error: Exception, pauses: list[float]) -> None:
    attempt = Attempt(error)
    with pytest.raises(type(error)):
        await until_it_works("write", attempt)
    assert (attempt.made, pauses) == (1, [])


def buried(error: Exception) -> list[str]:
    reasons: list[str] = []

    def fail() -> int:
        raise error

    assert or_dead_letter(fail, reasons.append) is None
    return reasons


def test_what_breaks_is_buried_with_its_reason() -> None:
    assert buried(PermanentError("no spans")) == ["no spans"]
    assert buried(ZeroDivisionError("division by zero")) == ["ZeroDivisionError: division by zero"]


@pytest.mark.parametrize("error", [TemporaryError("busy"), ConfigurationError("no such folder")])
def test_what_somebody_can_mend_is_not_buried(error: Exception) -> None:
    with pytest.raises(type(error)):
        buried(error)


def test_what_works_is_returned_and_nothing_is_buried() -> None:
    reasons: list[str] = []
    assert or_dead_letter(lambda: 7, reasons.append) == 7
    assert reasons == []


def test_a_clock_that_is_moved_by_hand_never_goes_back() -> None:
    clock = ManualClock(7)
    clock.advance_to(9)
    clock.advance_to(8)
    assert clock.now() == 9
    assert SystemClock().now() > 1_700_000_000 * 10**9
