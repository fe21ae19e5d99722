"""A minute of which results have expired stays as it was, also where another minute of its windows grows."""

from gate_worlds import SHOP, START, some

from pipeline.model.time import MINUTE
from pipeline.model.window import Touched
from pipeline.runtime.windows import recompute
from sinks.memory_gates import MemoryGateStore

LENGTH = 5 * MINUTE


async def _recompute(store: MemoryGateStore, *minutes: int) -> None:
    touched = [Touched("default", SHOP, START + minute * MINUTE) for minute in minutes]
    await store.write_minutes(await recompute(store, touched, [LENGTH], lambda _: False))


async def _counted(store: MemoryGateStore) -> dict[int, int]:
    windows = await store.load_windows("default", SHOP.id, LENGTH, START - LENGTH, START + LENGTH)
    return {one.start_ns: one.sums.n for one in windows if one.series.dimension == "forbid"}


async def test_a_window_never_shrinks_because_results_expired() -> None:
    store = MemoryGateStore()
    await store.write(some(3, 0, SHOP, 0))
    await _recompute(store, 0)
    assert (await _counted(store))[START] == 3
    gone = list(store.results)[: 2 * len(store.results) // 3]
    for key in gone:
        del store.results[key]
    await store.write(some(5, 10, SHOP, 1))
    await _recompute(store, 0, 1)
    assert (await _counted(store))[START] == 8
    assert sorted({at for (_, at) in store.minutes}) == [START, START + MINUTE]
