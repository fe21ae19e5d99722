"""Letters: dead letters as an administrator sees them: listed, shown, and sent back (docs/kafka.md).

They hold bytes that nobody could read and so nobody could redact by field. So no project's key reaches them: only who can read the store,
the topic, or the folder of a running ``up``.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, Protocol

import msgspec

from collectors.redaction.configured import redactor
from pipeline.apps import served
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError
from pipeline.model.dead_letter import LetterSummary, Replay
from pipeline.model.topology import DeadLetter, Publish, Topic
from pipeline.runtime.clock import SystemClock
from pipeline.runtime.facts import store_facts
from pipeline.runtime.replaying import Replayer
from sinks.clickhouse.letter_table import LetterTable
from sinks.clickhouse.store import Store

SHORTEST: Final = 4
"""Digits of an id that a person may write."""


class OnTopic(Protocol):
    """The letters of the brokers: :class:`~collectors.kafka.dead_letters.TopicLetters`."""

    @property
    def summaries(self) -> Mapping[str, LetterSummary]:
        """All of them, by id."""
        ...

    def letter(self, letter_id: str) -> DeadLetter | None:
        """Return one with its bytes."""
        ...


class Letters:
    """The letters of an installation: of its store's table and of its brokers' topic, where there are both, and each once."""

    def __init__(self, table: LetterTable | None, on_topic: OnTopic | None, replayer: Replayer) -> None:
        self._table = table
        self._on_topic = on_topic
        self._replayer = replayer

    async def summaries(self) -> list[LetterSummary]:
        """Return all letters, the latest first."""
        stored = await self._table.summaries() if self._table is not None else []
        noted = await self._table.replays() if self._table is not None else {}
        known = {letter.id for letter in stored}
        on_topic = self._on_topic.summaries if self._on_topic is not None else {}
        told = [_with(letter, noted.get(name)) for name, letter in on_topic.items() if name not in known]
        return sorted([*stored, *told], key=lambda letter: (-letter.received_ns, letter.id))

    async def by_id(self, letter_ids: Sequence[str]) -> list[DeadLetter]:
        """Return these letters, each from where it is kept."""
        stored = await self._table.by_id(letter_ids) if self._table is not None else []
        if self._on_topic is None:
            return stored
        known = {letter.id for letter in stored}
        missing = [name for name in letter_ids if name not in known]
        read = [await asyncio.to_thread(self._on_topic.letter, name) for name in missing]
        return [*stored, *(letter for letter in read if letter is not None)]

    async def replay(self, letter_ids: Sequence[str]) -> list[Replay]:
        """Send letters back, one after the other: their bytes need not all be in memory."""
        done: list[Replay] = []
        for letter_id in letter_ids:
            done += await self._replayer.replay(await self.by_id([letter_id]))
        return done


def _with(letter: LetterSummary, replay: Replay | None) -> LetterSummary:
    if replay is None:
        return letter
    return msgspec.structs.replace(letter, outcome=replay.outcome.value, detail=replay.detail)


class RunningUp:
    """The letters of a running ``up``, which has its store to itself: asked at the door that it leaves open in its folder."""

    def __init__(self, admin: served.Admin) -> None:
        self._admin = admin

    def _ask(self, path: str, body: Any = None) -> Any:
        return served.ask(self._admin.url, path, self._admin.token, body)

    async def summaries(self) -> list[LetterSummary]:
        """Return all letters, the latest first."""
        return msgspec.convert(await asyncio.to_thread(self._ask, "/dead-letters"), list[LetterSummary])

    async def by_id(self, letter_ids: Sequence[str]) -> list[DeadLetter]:
        """Return these letters."""
        said = await asyncio.to_thread(self._ask, "/dead-letters/show", {"ids": list(letter_ids)})
        return msgspec.convert(said, list[DeadLetter], builtin_types=())

    async def replay(self, letter_ids: Sequence[str]) -> list[Replay]:
        """Have letters sent back."""
        said = await asyncio.to_thread(self._ask, "/dead-letters/replay", {"ids": list(letter_ids)})
        return msgspec.convert(said, list[Replay])


@asynccontextmanager
async def opened(settings: TracegradeSettings, environment: Mapping[str, str] = os.environ) -> AsyncIterator[Letters | RunningUp]:
    """Open the letters of an installation.

    Raises:
        ConfigurationError: there is neither a store nor a topic.
    """
    admin = served.admin(settings.store.path) if settings.store.url is None else None
    if admin is not None:
        yield RunningUp(admin)
        return
    has_store = settings.store.url is not None or settings.store.path.exists()
    if not has_store and settings.kafka is None:
        raise ConfigurationError(
            f"there is no data in {settings.store.path}; start tracegrade up, or name the folder as store.path in tracegrade.yaml"
        )
    async with AsyncExitStack() as stack:
        store: Store | None = None
        on_topic: OnTopic | None = None
        if has_store:
            store = await asyncio.to_thread(Store.open, settings.store, environment)
            stack.push_async_callback(store.close)
        if settings.kafka is None:
            publish = _stored(store)
        else:
            publish, on_topic = await _over_kafka(settings, environment, stack)
        table = store.letters if store is not None else None
        yield Letters(table, on_topic, Replayer(publish, table, SystemClock(), redactor(settings.redaction)))


async def _over_kafka(
    settings: TracegradeSettings, environment: Mapping[str, str], stack: AsyncExitStack
) -> tuple[Publish, OnTopic]:
    from collectors.kafka.dead_letters import TopicLetters  # noqa: PLC0415 - who has no brokers has no client of them
    from collectors.kafka.producer import KafkaProducer  # noqa: PLC0415
    from collectors.kafka.publisher import KafkaPublisher  # noqa: PLC0415
    from collectors.kafka.topics import partitions  # noqa: PLC0415

    kafka = settings.kafka_or_refuse()
    counts = await asyncio.to_thread(partitions, kafka, environment)
    on_topic = stack.enter_context(await asyncio.to_thread(TopicLetters, kafka, environment))
    producer = await stack.enter_async_context(KafkaProducer(kafka, environment))
    return KafkaPublisher(producer, counts), on_topic


def _stored(store: Store | None) -> Publish:
    """Return what stores records where nothing runs: they are graded when ``up`` starts next."""

    async def publish(topic: Topic, records: Sequence[Any]) -> None:  # noqa: ARG001 - there is one place
        if store is not None:
            await store_facts(store, records)

    return publish


def found(letters: Sequence[LetterSummary], written: str) -> str:
    """Return the whole id of which somebody wrote the beginning.

    Raises:
        ConfigurationError: no letter has it, or several have.
    """
    matching = [letter.id for letter in letters if letter.id.startswith(written)] if len(written) >= SHORTEST else []
    if len(matching) != 1:
        what = f"{len(matching)} dead letters have" if matching else "no dead letter has"
        raise ConfigurationError(
            f"{what} an id that begins with {written!r}; write at least {SHORTEST} digits of one that tracegrade dead-letters list shows"
        )
    return matching[0]
