"""What Faust commits when a partition is read again from an earlier offset; no broker is needed to see it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from faust.transport.drivers import aiokafka
from faust.types import TP

from pipeline.config.kafka import KafkaSettings
from pipeline.model.topology import ASSEMBLE
from pipeline.runtime.faust.application import application

AT = TP("tracegrade.traces", 0)


@pytest.fixture
def transport(tmp_path: Path) -> Any:
    return application(ASSEMBLE, KafkaSettings(brokers=("127.0.0.1:1",)), {}, str(tmp_path)).transport


@contextmanager
def a_consumer(made: Any, transport: Any) -> Iterator[Any]:
    consumer = made(transport, callback=ignore, on_partitions_revoked=ignore, on_partitions_assigned=ignore)
    try:
        yield consumer
    finally:
        consumer._thread.thread_loop.close()


async def ignore(*_: Any) -> None:
    return None


async def committed(consumer: Any, acknowledged: list[int]) -> int | None:
    """Read on after a seek back to 4 while 11 was on its way, acknowledge, and commit once a second."""
    consumer._committed_offset[AT] = 4
    consumer._read_offset[AT] = 4
    await consumer._add_gap(AT, 5, 11)
    consumer._acked[AT].extend(acknowledged)
    consumer._acked_index[AT].update(acknowledged)
    newest: int | None = None
    while (offset := consumer._new_offset(AT)) is not None:
        newest = consumer._committed_offset[AT] = offset
    return newest


async def test_nothing_is_committed_that_was_not_acknowledged(transport: Any) -> None:
    with a_consumer(transport.Consumer, transport) as consumer:
        assert await committed(consumer, [4, 5, 6]) == 7
        assert consumer._new_offset(AT) is None


async def test_what_is_acknowledged_after_records_that_were_deleted_unread_is_committed(transport: Any) -> None:
    with a_consumer(transport.Consumer, transport) as consumer:
        assert await committed(consumer, [20, 21]) == 22


async def test_fausts_own_consumer_would_commit_over_what_nobody_has_done(transport: Any) -> None:
    with a_consumer(aiokafka.Consumer, transport) as consumer:
        assert await committed(consumer, [4, 5, 6]) == 12


async def test_a_commit_that_failed_is_made_again(transport: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_consumer(transport.Consumer, transport) as consumer:
        monkeypatch.setattr(consumer._thread, "commit", refuse)
        monkeypatch.setattr(consumer._thread, "assignment", lambda: {AT})
        consumer._acked[AT].extend([4, 5])
        assert not await consumer._commit({AT: consumer._new_offset(AT)})
        assert consumer._new_offset(AT) == 6


async def test_offsets_of_partitions_that_went_elsewhere_are_not_committed(
    transport: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_consumer(transport.Consumer, transport) as consumer:
        monkeypatch.setattr(consumer._thread, "assignment", set)
        assert not await consumer._thread._commit({AT: 7})


async def refuse(_: Any) -> bool:
    return False
