"""What the page of a run shows, made of what is stored of it: a page of its steps, its results with places for their evidence."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from pipeline.apps.pages.citations import Cited, Place
from pipeline.apps.pages.excerpt import Excerpt, excerpt
from pipeline.apps.pages.step_text import arguments_of, conversation
from pipeline.model.evidence import Evidence
from pipeline.model.result import Kind, Result
from pipeline.model.spending import Cost
from pipeline.model.step import Step, StepKind, ToolCall
from pipeline.scorers.calls import NOT_EXECUTED
from pipeline.scorers.cost import cost_of
from pipeline.scorers.prices import PriceTable
from pipeline.stages.outline import Entry
from sinks.clickhouse.run_detail import RunDetail
from sinks.clickhouse.run_history import RunHistory, Weighted
from sinks.clickhouse.run_rows import CONVERTED

STEPS: Final = 200
"""Steps on one page."""
TEXT: Final = 1_200
"""Characters of an argument or a result on it."""
DEEPEST: Final = 8
"""Levels that are told apart by how far they are indented; what is deeper says how deep it is."""
FIRST: Final = ("verdict", "composite")
_KINDS: Final = (Kind.VERDICT, Kind.JUDGED, Kind.CODE, Kind.COMPOSITE)
_WORDS: Final = {
    StepKind.AGENT: "agent",
    StepKind.ORCHESTRATION: "orchestration",
    StepKind.CHAIN: "wrapper",
    StepKind.MODEL: "model",
    StepKind.TOOL: "tool",
    StepKind.RETRIEVAL: "retrieval",
    StepKind.IGNORED: "ignored",
    StepKind.OTHER: "other",
}


class Text(NamedTuple):
    """A labelled text of a step; ``of`` names it in the address of the whole of it, ``folded`` where it is opened on demand."""

    label: str
    of: str
    shown: Excerpt
    folded: bool = False


class Row(NamedTuple):
    """A step as it is drawn. ``level`` is how far it is indented, from 0 on; ``cited_by`` the results whose evidence is in it."""

    number: int
    entry: Entry
    what: str
    name: str
    texts: tuple[Text, ...]
    flags: tuple[str, ...]
    level: int
    cited_by: tuple[str, ...]
    cost: Cost | None
    """By the price table that is in force; None where the run's cost has nothing of it."""


class Steps(NamedTuple):
    """One page of a run's steps. ``above`` leads from the run's head to the first of them."""

    rows: tuple[Row, ...]
    total: int
    page: int
    pages: int
    above: tuple[Entry, ...]


class Scored(NamedTuple):
    """A result, and where its evidence stands: a fragment on this page, or the span id of a step that is on another page of steps."""

    weighted: Weighted
    place: Place | None
    shown: bool
    """Whether the place is on this page."""


class RunView(NamedTuple):
    """All of it."""

    steps: Steps
    scores: tuple[Scored, ...]
    unexecuted: tuple[ToolCall, ...]
    """Calls that models asked for and no span executed."""


def run_view(
    entries: Sequence[Entry],
    reads: Sequence[Evidence],
    detail: RunDetail,
    history: RunHistory,
    prices: PriceTable,
    page: int,
    step: str,
) -> RunView:
    """Return what is shown of a run: its ``page`` of steps, from 1 on, or that of the step of this span id."""
    cited = Cited(entries, detail.request, detail.answer, reads)
    results = sorted(history.results, key=lambda one: _rank(one.result))
    places = [cited.place(one.result.evidence) for one in results]
    number = _page_of(entries, step) if step else min(max(page, 1), _pages(entries))
    quotes: dict[str, list[tuple[str, str]]] = {}
    for one, place in zip(results, places, strict=True):
        if place is not None and place.span_id:
            quotes.setdefault(place.span_id, []).append((one.result.dimension, one.result.evidence.strip().removesuffix("…")))
    steps = _steps(entries, number, quotes, prices)
    here = {row.entry.step.span_id for row in steps.rows}
    scores = tuple(
        Scored(one, place, shown=place is not None and (not place.span_id or place.span_id in here))
        for one, place in zip(results, places, strict=True)
    )
    return RunView(steps, scores, tuple(call for call in detail.tool_calls if call.error == NOT_EXECUTED))


def _rank(result: Result) -> tuple[int, int]:
    """What decides comes first, then what it was made of: what the judge said, what code found."""
    first = FIRST.index(result.dimension) if result.dimension in FIRST else len(FIRST)
    return first, _KINDS.index(result.kind)


def _pages(entries: Sequence[Entry]) -> int:
    return max(1, -(-len(entries) // STEPS))


def _page_of(entries: Sequence[Entry], span_id: str) -> int:
    return 1 + next((at for at, entry in enumerate(entries) if entry.step.span_id == span_id), 0) // STEPS


def _steps(entries: Sequence[Entry], page: int, quotes: dict[str, list[tuple[str, str]]], prices: PriceTable) -> Steps:
    begin = (page - 1) * STEPS
    shown = entries[begin : begin + STEPS]
    rows = tuple(_row(begin + at, entry, quotes.get(entry.step.span_id, []), prices) for at, entry in enumerate(shown, start=1))
    return Steps(rows, len(entries), page, _pages(entries), tuple(_above(entries, begin)))


def _above(entries: Sequence[Entry], begin: int) -> Iterator[Entry]:
    """Yield what the first step of a page hangs below, from the head on down."""
    depth = entries[begin].depth if begin < len(entries) else 0
    found: list[Entry] = []
    for entry in reversed(entries[:begin]):
        if entry.depth < depth:
            found.append(entry)
            depth = entry.depth
    return reversed(found)


def _row(number: int, entry: Entry, quoted: Sequence[tuple[str, str]], prices: PriceTable) -> Row:
    step = entry.step
    named = {StepKind.AGENT: step.agent, StepKind.MODEL: step.model, StepKind.TOOL: step.tool.name if step.tool else ""}
    return Row(
        number=number,
        entry=entry,
        what=_WORDS[step.kind],
        name=named.get(step.kind, "") or step.name,
        texts=tuple(_texts(step, [quote for _, quote in quoted])),
        flags=tuple(flag for flag in step.flags if flag != CONVERTED),  # a run is converted as a whole, and its head says so
        level=min(entry.depth, DEEPEST),
        cited_by=tuple(dict.fromkeys(dimension for dimension, _ in quoted)),
        cost=cost_of((entry.billed,), prices) if entry.billed is not None else None,
    )


def _texts(step: Step, quotes: Sequence[str]) -> Iterator[Text]:
    for label, of, text, folded in _fields(step):
        if text:
            shown = excerpt(text, TEXT, quotes)
            yield Text(label, of, shown, folded and not any(piece.quoted for piece in shown.pieces))


def _fields(step: Step) -> Iterator[tuple[str, str, str, bool]]:
    """Yield (label, name, text, whether it is folded) of what a step holds."""
    yield "given", "input", conversation(step.input), True
    if step.tool is not None:
        yield "arguments", "arguments", arguments_of(step.tool), False
        yield "result", "result", step.tool.result or "", False
        yield "error", "error", step.tool.error or "", False
    yield "said", "output", conversation(step.output), step.kind not in (StepKind.MODEL, StepKind.OTHER)
    if step.error and (step.tool is None or step.error != step.tool.error):
        yield "error", "failure", step.error, False


def whole_text(step: Step, of: str) -> str | None:
    """Return the whole of a step's text of this name; None where it has none."""
    found: dict[str, Any] = {name: text for _, name, text, _ in _fields(step)}
    return found.get(of) or None
