"""The topology: what a node writes is read by whom it concerns, and everything about one thing is in one partition."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.kafka.nouns import spans

from collectors.kafka.records import encode
from pipeline.model import ids
from pipeline.model.result import Feedback, JudgeRequest, Judgment, Outcome
from pipeline.model.run import Cohort
from pipeline.model.span import Span
from pipeline.model.topology import (
    DEAD_LETTERS,
    JUDGE,
    TOPICS,
    TOPOLOGY,
    TOUCHED,
    TRACES,
    TRIPS,
    DeadLetter,
    Node,
    Topic,
    bucket_of_agent,
)
from pipeline.model.window import Touched, Transition, Trip
from pipeline.runtime.handover import Handover, Take, publisher

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
partition_counts = st.integers(1, 64)


class Nodes:
    """What each node was handed."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, list[Any]]] = []
        self.handover = Handover({node.name: self._take(node) for node in TOPOLOGY})

    def _take(self, node: Node) -> Take:
        async def take(records: Sequence[Any]) -> None:
            self.taken.append((node.name, list(records)))

        return take


@pytest.mark.parametrize("node", TOPOLOGY, ids=lambda node: node.name)
async def test_what_a_node_may_write_reaches_whoever_reads_it(node: Node) -> None:
    for topic in node.writes:
        nodes = Nodes()
        await publisher(node, nodes.handover)(topic, ["record"])
        assert nodes.taken == [(reader.name, ["record"]) for reader in TOPOLOGY if reader.reads is topic]


@pytest.mark.parametrize("node", TOPOLOGY, ids=lambda node: node.name)
async def test_what_a_node_is_not_declared_to_write_is_refused(node: Node) -> None:
    for topic in TOPICS:
        nodes = Nodes()
        if topic in node.writes:
            continue
        with pytest.raises(AssertionError, match=f"{node.name} is not declared to write {topic.name}"):
            await publisher(node, nodes.handover)(topic, ["record"])
        assert nodes.taken == []


def test_every_topic_has_at_most_one_reader_and_every_node_may_bury() -> None:
    assert len({node.reads.name for node in TOPOLOGY}) == len(TOPOLOGY)
    assert len({topic.name for topic in TOPICS}) == len(TOPICS)
    assert all(DEAD_LETTERS in node.writes for node in TOPOLOGY)
    assert {topic for node in TOPOLOGY for topic in (node.reads, *node.writes)} == set(TOPICS)


async def test_trouble_of_whoever_takes_the_records_is_the_writers_trouble() -> None:
    async def broken(_: Sequence[Any]) -> None:
        raise RuntimeError("a bug")

    handover = Handover({node.name: broken for node in TOPOLOGY})
    with pytest.raises(RuntimeError, match="a bug"):
        await handover(JUDGE, [])
    await handover(TRIPS, ["nobody reads it"])


def about(project: str, trace_id: str, run_id: str, cohort: Cohort, span: Span) -> list[tuple[str, Topic, Any]]:
    """A record of each kind: (what it is about, topic, record)."""
    judgment = Judgment(project, trace_id, run_id, 4, "t", "c", "tone", Outcome.PASS)
    request = JudgeRequest(project, trace_id, run_id, cohort.agent, 4, "t", "…", (), "p", 1.0, 1, 2)
    elsewhere = Cohort(cohort.agent, "another", "staging")
    trip = Trip(project, "gate", "hard", cohort, "id", Transition.FIRED, 0)
    return [
        ("trace", TRACES, span),
        ("trace", TRACES, judgment),
        ("trace", TRACES, Feedback(project, trace_id, "f", -1.0)),
        ("run", JUDGE, request),
        ("agent", TOUCHED, Touched(project, cohort, 0)),
        ("agent", TOUCHED, Touched(project, elsewhere, 60)),
        ("agent", TRIPS, trip),
        ("letter", DEAD_LETTERS, DeadLetter(project, "origin", "reason", b"")),
    ]


@given(spans, names, names, partition_counts)
def test_everything_about_one_thing_is_in_one_partition_however_many_there_are(
    span: Span, run_id: str, agent: str, partitions: int
) -> None:
    cohort = Cohort(agent, "1", "prod")
    by_subject: dict[str, set[int]] = {}
    for subject, topic, record in about(span.project, span.trace_id, run_id, cohort, span):
        partition = topic.partition_of(record, partitions)
        assert 0 <= partition < partitions
        by_subject.setdefault(subject, set()).add(partition)
        assert {one.partition for one in encode(topic, [record], partitions)} == {partition}
    assert {subject: len(found) for subject, found in by_subject.items()} == dict.fromkeys(by_subject, 1)
    assert by_subject["trace"] == {ids.bucket(span.project, span.trace_id) % partitions}
    assert by_subject["agent"] == {bucket_of_agent(span.project, agent) % partitions}


@given(names, names, partition_counts, st.integers(1, 8))
def test_more_partitions_part_what_was_together_and_join_nothing(
    project: str, trace_id: str, partitions: int, times: int
) -> None:
    one = Feedback(project, trace_id, "f", 1.0)
    assert TRACES.partition_of(one, partitions * times) % partitions == TRACES.partition_of(one, partitions)


def test_partitions_are_the_same_in_every_release() -> None:
    """Worked values: a worker of another release must not look for a trace in another partition."""
    feedback = [Feedback("default", f"{number:032x}", "f", 1.0) for number in range(1, 7)]
    assert [TRACES.partition_of(one, 16) for one in feedback] == [3, 9, 15, 12, 10, 0]
    assert [bucket_of_agent("default", agent) for agent in ("shop", "desk", "")] == [9, 205, 417]
