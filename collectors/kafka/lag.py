"""Lag: how far each stage is behind what was written for it, and which worker has which partition."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Final

import msgspec
from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import OffsetSpec

from collectors.kafka.cluster import PATIENCE_S, Cluster
from collectors.kafka.topics import partitions_of
from pipeline.config.kafka import KafkaSettings
from pipeline.model.topology import TOPOLOGY, Node

NOT_STARTED: Final = "not started"
"""State of a group that no worker ever joined."""
BRIDGES: Final = "tracegrade.bridge"
"""The consumer group of all bridges."""
NO_GROUP: Final = (KafkaError.GROUP_ID_NOT_FOUND,)


class PartitionLag(msgspec.Struct, frozen=True):
    """A partition as a group sees it. Offsets count records."""

    partition: int
    committed: int | None
    """Offset of the next record to process; None where none was ever acknowledged."""
    end: int
    """Offset that the next record will get."""
    lag: int
    """Records that are there and not acknowledged."""
    owner: str
    """Client id and host of the worker that has it; empty where none has."""


class GroupLag(msgspec.Struct, frozen=True):
    """A stage's consumer group."""

    node: str
    group: str
    topic: str
    state: str
    """What the cluster calls it: stable, empty, preparing rebalancing …; or :data:`NOT_STARTED`."""
    lag: int
    """Over all partitions."""
    partitions: tuple[PartitionLag, ...]


def group_of(node: Node) -> str:
    """Return the consumer group of a stage."""
    return f"tracegrade.{node.name}"


def lag(settings: KafkaSettings, environment: Mapping[str, str], foreign: Iterable[str] = ()) -> list[GroupLag]:
    """Return the lag of the bridges on each ``foreign`` topic that is there, then of every stage of the topology, in its order.

    Raises:
        ConfigurationError: a topic is missing, or the cluster refuses the user.
        TemporaryError: no broker answers.
    """
    cluster = Cluster(settings, environment)
    counts = partitions_of(cluster)
    there = cluster.metadata().topics
    bridged = [(name, len(there[name].partitions)) for name in foreign if name in there]
    return [
        *(_of_group(cluster, "bridge", BRIDGES, name, count) for name, count in bridged),
        *(_of_group(cluster, node.name, group_of(node), node.reads.name, counts[node.reads.name]) for node in TOPOLOGY),
    ]


def _of_group(cluster: Cluster, name: str, group: str, topic: str, count: int) -> GroupLag:
    state, owners = _members(cluster, group, topic)
    committed = _committed(cluster, group, topic)
    beginnings = _offsets(cluster, topic, count, OffsetSpec.earliest())
    ends = _offsets(cluster, topic, count, OffsetSpec.latest())  # after the committed ones, which never pass them
    parts = tuple(
        PartitionLag(
            partition=at,
            committed=committed.get(at),
            end=ends[at],
            lag=ends[at] - max(committed.get(at, 0), beginnings[at]),
            owner=owners.get(at, ""),
        )
        for at in range(count)
    )
    return GroupLag(name, group, topic, state, sum(part.lag for part in parts), parts)


def _members(cluster: Cluster, group: str, topic: str) -> tuple[str, dict[int, str]]:
    def ask() -> Any:
        return cluster.client.describe_consumer_groups([group], request_timeout=PATIENCE_S)

    found: dict[str, Any] = cluster.answers(ask, missing=NO_GROUP)
    if group not in found or found[group].state.name == "DEAD":
        return NOT_STARTED, {}
    owners = {
        part.partition: f"{member.client_id} on {member.host.removeprefix('/')}"
        for member in found[group].members
        for part in member.assignment.topic_partitions
        if part.topic == topic
    }
    return found[group].state.name.lower().replace("_", " "), owners


def _committed(cluster: Cluster, group: str, topic: str) -> dict[int, int]:
    request = [ConsumerGroupTopicPartitions(group)]
    found = cluster.answers(
        lambda: cluster.client.list_consumer_group_offsets(request, request_timeout=PATIENCE_S), missing=NO_GROUP
    )
    parts = [part for offsets in found.values() for part in offsets.topic_partitions or []]
    return {part.partition: part.offset for part in parts if part.topic == topic and part.offset >= 0}


def _offsets(cluster: Cluster, topic: str, count: int, of: OffsetSpec) -> dict[int, int]:
    wanted = {TopicPartition(topic, at): of for at in range(count)}

    def ask() -> dict[str, Future[Any]]:
        asked: Mapping[TopicPartition, Future[Any]] = cluster.client.list_offsets(
            wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=PATIENCE_S
        )
        return {str(part.partition): future for part, future in asked.items()}

    return {int(at): info.offset for at, info in cluster.answers(ask).items()}
