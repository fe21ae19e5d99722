"""Handover: the topology in one process. What a node publishes is handed to the node that reads the topic."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pipeline.model.topology import TOPOLOGY, Node, Publish, Topic

Take = Callable[[Sequence[Any]], Awaitable[None]]


class Handover:
    """Routes by the declared topology; a topic that no node reads ends here."""

    def __init__(self, takes: Mapping[str, Take]) -> None:
        """Take what each node does with its records, by the node's name."""
        self._takes = {node.reads.name: takes[node.name] for node in TOPOLOGY}

    async def __call__(self, topic: Topic, records: Sequence[Any]) -> None:
        """Hand records to whoever reads the topic."""
        if topic.name in self._takes:
            await self._takes[topic.name](records)


def publisher(node: Node, publish: Publish) -> Publish:
    """Return what the node publishes through: only what the topology says that it writes."""
    written = {topic.name for topic in node.writes}

    async def declared(topic: Topic, records: Sequence[Any]) -> None:
        if topic.name not in written:
            raise AssertionError(f"{node.name} is not declared to write {topic.name}")
        await publish(topic, records)

    return declared
