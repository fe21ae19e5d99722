"""Topics: declares those of the topology on a cluster, and says how many partitions each has."""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Final, Literal, TypeVar

import msgspec
from confluent_kafka import KafkaError
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from collectors.kafka.cluster import PATIENCE_S, Cluster
from collectors.kafka.records import LARGEST_RECORD
from pipeline.config.kafka import LEAST_RETENTION, KafkaSettings
from pipeline.errors import ConfigurationError, TemporaryError
from pipeline.model.time import SECOND
from pipeline.model.topology import DEAD_LETTERS, TOPICS

MS: Final = SECOND // 1000

T = TypeVar("T")


class Declared(msgspec.Struct, frozen=True):
    """What became of a topic."""

    topic: str
    outcome: Literal["created", "unchanged", "altered"]
    partitions: int
    replication: int
    altered: tuple[str, ...] = ()
    """Each as ``name: old -> new``."""
    warning: str = ""
    """What the settings ask for, the topic has not, and no command changes while records are in it."""


def create(settings: KafkaSettings, environment: Mapping[str, str], foreign: Iterable[str] = ()) -> tuple[Declared, ...]:
    """Declare every topic; doing it again changes nothing.

    A topic that exists keeps its partitions, because what is in it was placed by their number; its configuration becomes what is wanted.
    Topics that others write (``foreign``) are made where they are missing; those that exist are theirs, and left as they are.

    Raises:
        ConfigurationError: the cluster refuses the user, or the topics as they are asked for.
        TemporaryError: it does not answer, or not in time.
    """
    cluster = Cluster(settings, environment)
    cluster.metadata()  # says at once when nobody answers, or will
    names = [*(topic.name for topic in TOPICS), *foreign]
    new = [
        NewTopic(name, settings.partitions, settings.replication, config=_wanted(settings, name, settings.replication))
        for name in names
    ]
    # All are asked for: the controller knows which exist, where metadata still shows a topic that was deleted a moment ago.
    made = cluster.answers(
        lambda: cluster.client.create_topics(new, operation_timeout=PATIENCE_S, request_timeout=PATIENCE_S),
        missing=[KafkaError.TOPIC_ALREADY_EXISTS],
    )
    there = _there(cluster, names)
    ours = [topic.name for topic in TOPICS]
    altered = _alter(cluster, settings, [topic for name, topic in there.items() if name not in made and name in ours])
    return tuple(_declared(settings, there[name], name in made, altered.get(name)) for name in names)


def partitions(settings: KafkaSettings, environment: Mapping[str, str]) -> dict[str, int]:
    """Return how many partitions each topic of the topology has, by the topic's name.

    Raises:
        ConfigurationError: a topic is missing, or the cluster refuses the user.
        TemporaryError: no broker answers.
    """
    return partitions_of(Cluster(settings, environment))


def partitions_of(cluster: Cluster) -> dict[str, int]:
    """Return what :func:`partitions` does, of a cluster."""
    found = cluster.metadata().topics
    missing = [topic.name for topic in TOPICS if topic.name not in found]
    if missing:
        raise ConfigurationError(f"the cluster has no topic {', '.join(missing)}{cluster.seen_by}; run tracegrade topics create")
    return {topic.name: len(found[topic.name].partitions) for topic in TOPICS}


def retention_of(settings: KafkaSettings, environment: Mapping[str, str], names: Sequence[str]) -> int:
    """Return for how long the first of these topics to forget keeps its records, in ns; where it does not say, ``kafka.retention``.

    Raises:
        ConfigurationError: one of them is not there.
        TemporaryError: no broker answers.
    """
    cluster = Cluster(settings, environment)
    there = cluster.metadata().topics
    missing = [name for name in names if name not in there]
    if missing:
        raise ConfigurationError(
            f"the cluster has no topic {', '.join(missing)}{cluster.seen_by}; write it in bridge.topics and run tracegrade topics create,"
            " or write another there"
        )
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    try:
        described = cluster.answers(lambda: _by_name(cluster.client.describe_configs(resources, request_timeout=PATIENCE_S)))
    except ConfigurationError:  # who may read a topic may not always ask how it is configured
        return settings.retention
    kept = [int(entries["retention.ms"].value or -1) for entries in described.values()]
    return min((one * MS for one in kept if one >= 0), default=settings.retention)


def _declared(settings: KafkaSettings, topic: "_Found", made: bool, altered: tuple[str, ...] | None) -> Declared:
    if altered is not None:
        return _compared(settings, topic, altered)
    return Declared(topic.name, "created" if made else "unchanged", topic.partitions, topic.replication)


def _wanted(settings: KafkaSettings, name: str, replication: int) -> dict[str, str]:
    # Dead letters hold what nobody could redact by field: they are kept for the week that they are kept everywhere, and no longer.
    retention = LEAST_RETENTION if name == DEAD_LETTERS.name else settings.retention
    return {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "max.message.bytes": str(LARGEST_RECORD),
        "message.timestamp.type": "LogAppendTime",  # the clock of a partition that lags (docs/architecture.md)
        "min.insync.replicas": str(max(1, replication - 1)),
        "retention.ms": str(retention // MS),
    }


class _Found(msgspec.Struct, frozen=True):
    """A topic as it is."""

    name: str
    partitions: int
    replication: int


def _there(cluster: Cluster, names: Sequence[str]) -> dict[str, _Found]:
    """Return the topics once the brokers know all of them: one that was created just now takes a moment to get around."""
    until = time.monotonic() + PATIENCE_S
    while True:
        topics = cluster.metadata().topics
        found = {
            name: _Found(name, len(parts), min(len(part.replicas) for part in parts.values()))
            for name in names
            if name in topics and (parts := topics[name].partitions)
        }
        if len(found) == len(names):
            return found
        if time.monotonic() > until:
            missing = [name for name in names if name not in found]
            raise TemporaryError(f"the brokers still do not know {', '.join(missing)} after {PATIENCE_S:.0f} s")
        time.sleep(0.05)


def _alter(cluster: Cluster, settings: KafkaSettings, existing: Iterable[_Found]) -> dict[str, tuple[str, ...]]:
    """Bring the configuration of topics to what is wanted; return what was changed, by topic."""
    wanted = {topic.name: _wanted(settings, topic.name, topic.replication) for topic in existing}
    if not wanted:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in wanted]
    described = cluster.answers(lambda: _by_name(cluster.client.describe_configs(resources, request_timeout=PATIENCE_S)))
    differing = {name: {key for key, value in wanted[name].items() if described[name][key].value != value} for name in wanted}
    changes = [
        ConfigResource(ResourceType.TOPIC, name, incremental_configs=[_set(key, wanted[name][key]) for key in sorted(keys)])
        for name, keys in differing.items()
        if keys
    ]
    if changes:
        cluster.answers(lambda: _by_name(cluster.client.incremental_alter_configs(changes, request_timeout=PATIENCE_S)))
    return {
        name: tuple(f"{key}: {described[name][key].value} -> {wanted[name][key]}" for key in sorted(keys))
        for name, keys in differing.items()
    }


def _by_name(asked: Mapping[ConfigResource, Future[T]]) -> dict[str, Future[T]]:
    return {resource.name: future for resource, future in asked.items()}


def _set(key: str, value: str) -> ConfigEntry:
    return ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)


def _compared(settings: KafkaSettings, topic: _Found, altered: tuple[str, ...]) -> Declared:
    """Report on a topic that existed before."""
    differs = []
    if topic.partitions != settings.partitions:
        differs.append(f"partitions {topic.partitions} (asked: {settings.partitions})")
    if topic.replication != settings.replication:
        differs.append(f"replication {topic.replication} (asked: {settings.replication})")
    warning = (
        f"it exists with {' and '.join(differs)}, and keeps that; write what it has in the configuration, or drain and recreate it: stop the collectors,"
        " wait until tracegrade lag shows 0, stop the workers, delete the topic and run tracegrade topics create"
        if differs
        else ""
    )
    outcome: Literal["altered", "unchanged"] = "altered" if altered else "unchanged"
    return Declared(topic.name, outcome, topic.partitions, topic.replication, altered, warning)
