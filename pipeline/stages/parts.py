"""Parts: what each agent of a run did and spent. Together they are the run: nothing is in two of them, and nothing in none."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from pipeline.model.run import Part
from pipeline.model.spending import Billed
from pipeline.model.step import ToolCall
from pipeline.stages.lineage import Lineage
from pipeline.stages.spending import Spending, usage_of


def parts_of(lineage: Lineage, calls: Sequence[ToolCall], spending: Spending) -> tuple[Part, ...]:
    """Return the run's own agent and its sub-agents, in order of their first step."""
    paths = lineage.paths
    if not any(paths.values()):
        failures = sum(call.error is not None for call in calls)
        usage = usage_of(one for _, one in spending)
        return (Part("", lineage.agent, len(lineage.steps), len(lineage.model_calls), len(calls), failures, usage),)
    steps = Counter(paths[step.span_id] for step in lineage.steps)
    model_calls = Counter(paths[call.step.span_id] for call in lineage.model_calls)
    tool_calls = Counter(call.agent for call in calls)
    failed = Counter(call.agent for call in calls if call.error is not None)
    spent: defaultdict[str, list[Billed]] = defaultdict(list)
    for step, billed in spending:
        spent[paths[step.span_id]].append(billed)
    return tuple(
        Part(
            path=path,
            agent=path.rpartition("/")[2].replace("%2F", "/") or lineage.agent,
            steps=count,
            model_calls=model_calls[path],
            tool_calls=tool_calls[path],
            failed_calls=failed[path],
            usage=usage_of(spent[path]),
        )
        for path, count in steps.items()
    )
