"""Holdings: what each node of the topology does with the partitions it was given, built from the parts that every runtime shares."""

from collections.abc import Collection, Mapping

from collectors.redaction.configured import redactor
from pipeline.apps.parts import Parts
from pipeline.model.topology import ASSEMBLE, GATE, JUDGE, JUDGING, TOUCHED, TRACES, Node, Publish, bucket_of_agent
from pipeline.runtime.assembling import Assembling
from pipeline.runtime.clock import Clock
from pipeline.runtime.dead_letters import masked_by
from pipeline.runtime.desk import AskOf, JudgeDesk
from pipeline.runtime.fence import Fence
from pipeline.runtime.gate_owner import GateOwner
from pipeline.runtime.gating import Gating
from pipeline.runtime.handover import publisher
from pipeline.runtime.holding import Acknowledge, DeadLetters, Hold
from pipeline.runtime.judging import Judging
from pipeline.runtime.owner import TraceOwner
from pipeline.runtime.record_desk import OpenSource, RecordDesk
from pipeline.runtime.telemetry import Metric, Telemetry
from pipeline.runtime.windows import Evaluating
from sinks.clickhouse.store import Store


class Holdings:
    """Makes a new holding for each assignment: state is never carried from one to the next (docs/adr/0005)."""

    def __init__(
        self,
        parts: Parts,
        store: Store,
        publish: Publish,
        partitions: Mapping[str, int],
        ask_of: AskOf,
        clock: Clock,
        telemetry: Telemetry,
        sources: Mapping[str, OpenSource],
    ) -> None:
        """Take how many partitions each topic has, by its name."""
        self._parts = parts
        self._store = store
        self._publish = publish
        self._partitions = partitions
        self._ask_of = ask_of
        self._clock = clock
        self._sources = sources
        self._telemetry = telemetry
        self._mask = masked_by(redactor(parts.settings.redaction))
        self._owner: TraceOwner | None = None
        telemetry.gauge(Metric.TRACES_OPEN, lambda: self._owner.open_traces if self._owner else 0)
        telemetry.gauge(Metric.RUNS_PENDING, lambda: self._owner.pending_runs if self._owner else 0)

    def of(self, node: Node) -> Hold:
        """Return what the node does with an assignment."""
        holds: Mapping[str, Hold] = {ASSEMBLE.name: self._assemble, JUDGING.name: self._judge, GATE.name: self._gate}
        return holds[node.name]

    def _seams(self, node: Node, fence: Fence) -> tuple[Store, Publish, DeadLetters]:
        store = fence.around(self._store)
        publish = publisher(node, fence.around_publish(self._publish))
        return store, publish, DeadLetters(node.name, store.bury, publish, self._telemetry, self._mask)

    def _assemble(self, owned: Collection[int], fence: Fence, acknowledge: Acknowledge) -> Assembling:
        store, publish, dead_letters = self._seams(ASSEMBLE, fence)
        partitions = self._partitions[TRACES.name]
        records = RecordDesk(self._sources, publish, self._clock, self._telemetry, self._parts.redacted())
        self._owner = owner = TraceOwner(store, self._parts.assembly(), publish, self._telemetry, partitions, owned, records.take)
        return Assembling(store, owner, publish, dead_letters, acknowledge, self._clock, records)

    def _judge(self, owned: Collection[int], fence: Fence, acknowledge: Acknowledge) -> Judging:
        publish, dead_letters = self._seams(JUDGING, fence)[1:]
        ask = self._ask_of(len(owned), self._partitions[JUDGE.name])
        desk = JudgeDesk(ask, publish, self._clock, self._telemetry, self._parts.settings.judge.concurrency)
        return Judging(desk, dead_letters, acknowledge, fence)

    def _gate(self, owned: Collection[int], fence: Fence, acknowledge: Acknowledge) -> Gating:
        store, publish, dead_letters = self._seams(GATE, fence)
        agents, assembly = self._partitions[TOUCHED.name], self._parts.assembly()
        owner = GateOwner(
            store,
            self._parts.gates(store),
            self._parts.messenger(store),
            self._parts.windows(),
            assembly.gating_of,
            publish,
            lambda project, agent: bucket_of_agent(project, agent) % agents in owned,
            owned,
            Evaluating(assembly.quality_of, assembly.revision),
        )
        return Gating(owner, store.clocks, self._partitions[TRACES.name], dead_letters, acknowledge, self._clock)
