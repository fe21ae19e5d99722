"""The steps of a stored run, as a tree is read."""

from builders import T0, a_span, a_step
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model import ids
from pipeline.model.span import Span
from pipeline.model.step import Step, StepKind, ToolCall
from pipeline.model.version import StoredTrace
from pipeline.stages.outline import Entry, outline

TRACE = "ab" * 16
KINDS = {"agent": StepKind.AGENT, "model": StepKind.MODEL, "tool": StepKind.TOOL}


def read(span: Span) -> Step:
    """A span whose name is what it is, and who."""
    what, _, who = span.name.partition(" ")
    kind = KINDS.get(what, StepKind.OTHER)
    tool = ToolCall(who) if kind is StepKind.TOOL else None
    return a_step(
        span.span_id,
        span.parent_id,
        kind,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        name=span.name,
        agent=who if kind is StepKind.AGENT else "",
        tool=tool,
    )


def told(*spans: Span, head: str = "a") -> list[tuple[str, int, int, str]]:
    return [
        _plain(entry) for entry in outline(StoredTrace("default", TRACE, spans=spans), ids.run_id("default", TRACE, head), read)
    ]


def _plain(entry: Entry) -> tuple[str, int, int, str]:
    return entry.step.span_id, entry.depth, entry.below, entry.path


def span(span_id: str, parent: str, name: str, at: int = 0) -> Span:
    return a_span(span_id, parent, name=name, start_ns=T0 + at, end_ns=T0 + at + 1)


def test_what_is_below_a_step_follows_it_and_siblings_stand_by_start() -> None:
    spans = (
        span("e", "a", "model m", 9),
        span("c", "b", "tool search", 2),
        span("d", "b", "tool check", 1),
        span("b", "a", "agent critic", 1),
        span("a", "", "agent lead"),
    )
    assert told(*spans) == [("a", 0, 4, ""), ("b", 1, 2, "critic"), ("d", 2, 0, "critic"), ("c", 2, 0, "critic"), ("e", 1, 0, "")]


def test_a_step_whose_parent_never_came_hangs_below_the_head() -> None:
    assert told(span("a", "", "agent lead"), span("b", "missing", "tool search", 1)) == [("a", 0, 1, ""), ("b", 1, 0, "")]


def test_a_cycle_costs_no_step_its_place() -> None:
    found = told(span("a", "", "agent lead"), span("b", "c", "tool one", 1), span("c", "b", "tool two", 2))
    assert sorted(name for name, *_ in found) == ["a", "b", "c"]


def test_a_run_that_the_trace_does_not_hold_has_no_steps() -> None:
    assert told(span("a", "", "agent lead"), head="b") == []
    assert told() == []


@given(st.lists(st.integers(0, 30), max_size=40))
def test_every_step_is_there_once_and_counts_what_is_below_it(parents: list[int]) -> None:
    """Of a tree in which each step hangs below one of those before it."""
    spans = [span("s0", "", "agent lead")]
    spans += [span(f"s{at}", f"s{parent % at}", "tool t", at) for at, parent in enumerate(parents, start=1)]
    found = told(*spans, head="s0")
    above = {one.span_id: one.parent_id for one in spans}
    assert sorted(name for name, *_ in found) == sorted(above)
    for name, depth, below, _ in found:
        line = [name]
        while above[line[-1]]:
            line.append(above[line[-1]])
        assert depth == len(line) - 1
        assert below == sum(name in _line(other, above) for other in above) - 1


def _line(name: str, above: dict[str, str]) -> list[str]:
    line = [name]
    while above[line[-1]]:
        line.append(above[line[-1]])
    return line
