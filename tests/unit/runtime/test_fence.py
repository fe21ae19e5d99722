"""The fence: nothing is done on behalf of partitions that are gone, and nobody waits on for them."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
from unit.runtime.turns import a_while, until

from pipeline.errors import PermanentError, TemporaryError
from pipeline.model.topology import TRACES, Topic
from pipeline.runtime import guard
from pipeline.runtime.fence import Fence, LostOwnershipError
from pipeline.runtime.guard import until_it_works
from sinks.memory_gates import MemoryGateStore


class Store:
    """Keeps what it is given, once it is let."""

    def __init__(self) -> None:
        self.kept: list[int] = []
        self.tries = 0
        self.trouble: Exception | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def keep(self, one: int, *, twice: bool = False) -> int:
        self.tries += 1
        await self.open.wait()
        if self.trouble is not None:
            raise self.trouble
        self.kept += [one] * (2 if twice else 1)
        return len(self.kept)


async def test_while_it_stands_everything_passes() -> None:
    store, fence = Store(), Fence()
    assert await fence.around(store).keep(7, twice=True) == 2
    assert store.kept == [7, 7]
    fence.check()


async def test_once_it_fell_nothing_is_called() -> None:
    store, fence = Store(), Fence()
    fenced = fence.around(store)
    fence.fall()
    fence.fall()
    with pytest.raises(LostOwnershipError):
        await fenced.keep(7)
    with pytest.raises(LostOwnershipError):
        fence.check()
    assert store.tries == 0


async def test_what_was_under_way_when_it_fell_is_done_and_nothing_follows_from_it() -> None:
    store, fence = Store(), Fence()
    store.open.clear()
    under_way = asyncio.create_task(_keep(fence.around(store)))
    await until(lambda: store.tries)
    fence.fall()
    store.open.set()
    with pytest.raises(LostOwnershipError):
        await under_way
    assert store.kept == [7]


def _keep(store: Store) -> Coroutine[Any, Any, int]:
    return store.keep(7)


@pytest.mark.parametrize("trouble", [TemporaryError("busy"), PermanentError("never")])
async def test_trouble_of_the_store_comes_through(trouble: Exception) -> None:
    store, fence = Store(), Fence()
    store.trouble = trouble
    with pytest.raises(type(trouble)):
        await fence.around(store).keep(7)


async def test_a_retry_ends_when_it_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "FIRST_DELAY", 0.0)
    store, fence = Store(), Fence()
    store.trouble = TemporaryError("the store is away")
    fenced = fence.around(store)
    retrying = asyncio.create_task(until_it_works("keep", lambda: fenced.keep(7)))
    await until(lambda: store.tries > 5)
    assert not retrying.done()
    fence.fall()
    with pytest.raises(LostOwnershipError):
        await retrying
    tries = store.tries
    await a_while()
    assert store.tries == tries


async def test_each_assignment_has_a_fence_of_its_own() -> None:
    store, former, current = Store(), Fence(), Fence()
    former.fall()
    assert await current.around(store).keep(1) == 1


def _methods(kind: type) -> list[str]:
    return [name for name, _ in inspect.getmembers(kind, inspect.iscoroutinefunction) if not name.startswith("_")]


async def test_every_call_of_a_store_goes_through_it() -> None:
    store, fence = MemoryGateStore(), Fence()
    fenced = fence.around(store)
    names = _methods(MemoryGateStore)
    assert len(names) > 20
    for name in names:
        own: Callable[..., Any] = getattr(store, name)
        through = getattr(fenced, name)
        assert through.__name__ == name
        assert inspect.signature(through) == inspect.signature(own)
    fence.fall()
    for name in names:
        arguments = inspect.signature(getattr(store, name)).parameters.values()
        with pytest.raises(LostOwnershipError):
            await getattr(fenced, name)(*[()] * sum(one.default is one.empty for one in arguments))


async def test_publishing_goes_through_it_too() -> None:
    fence = Fence()
    sent: list[Any] = []
    falls = False

    async def publish(topic: Topic, records: Sequence[Any]) -> None:
        sent.append((topic, *records))
        if falls:
            fence.fall()

    fenced = fence.around_publish(publish)
    await fenced(TRACES, ["one"])
    falls = True
    with pytest.raises(LostOwnershipError):
        await fenced(TRACES, ["two"])
    with pytest.raises(LostOwnershipError):
        await fenced(TRACES, ["three"])
    assert sent == [(TRACES, "one"), (TRACES, "two")]
