"""Hand-offs: where control of a run went from one of its agents to another (spec section 4.2)."""

from pipeline.model.spending import HandOff
from pipeline.model.step import Step, StepKind
from pipeline.stages.lineage import Lineage


def hand_offs(lineage: Lineage) -> tuple[HandOff, ...]:
    """Return the hand-offs of the run's own agents, in order.

    Control came from the agent above; where there is none, from the last one that had ended. An agent that was called like a tool returned and
    is no hand-off, nor is one that began beside another, as in a fan-out: nobody handed over to it.
    """
    if not any(lineage.paths.values()):  # one agent, as in most runs
        return ()
    above = _above(lineage)
    found: list[HandOff] = []
    ended: list[Step] = []
    agents = (one for one in lineage.steps if one.kind is StepKind.AGENT and one.agent and one.span_id in lineage.own)
    for step in agents:
        before = [one for one in ended if one.end_ns <= step.start_ns]
        source = above.get(step.span_id) or (max(before, key=lambda one: one.end_ns).agent if before else "")
        if source and source != step.agent:
            found.append(HandOff(source, step.agent))
        ended.append(step)
    return tuple(found)


def _above(lineage: Lineage) -> dict[str, str]:
    """Return the name of the nearest agent above each step below the head, empty where there is none."""
    names: dict[str, str] = {}
    waiting = [(child, _name(lineage.head)) for child in lineage.children(lineage.head)]
    while waiting:
        step, name = waiting.pop()
        names[step.span_id] = name
        waiting.extend((child, _name(step) or name) for child in lineage.children(step))
    return names


def _name(step: Step) -> str:
    return step.agent if step.kind is StepKind.AGENT else ""
