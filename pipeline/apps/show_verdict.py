"""Show a verdict, or a comparison of two runs, for a terminal or a pipe."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.apps.show import COLOURS, UNKNOWN, cell, table
from pipeline.apps.text import visible

ANSWERS = {"better": "green", "worse": "red", "equal": "", "not_decided": "yellow"}


def verdict(found: Mapping[str, Any]) -> RenderableType:
    """Return everything that a structured verdict says."""
    parts: list[RenderableType] = [_grid(_facts(found)), Text(f"\n{visible(found['summary'])}")]
    parts += [_scores("\nDimensions", found["dimensions"])] if found["dimensions"] else []
    parts += [_scores("\nChecks", found["checks"])] if found["checks"] else []
    if found["required_actions"]:
        parts.append(Text("\nRequired actions", style="bold"))
        parts += [Text(visible(f"{number}. {one}")) for number, one in enumerate(found["required_actions"], 1)]
    return Group(*parts)


def comparison(found: Mapping[str, Any]) -> RenderableType:
    """Return two runs and what stands between them."""
    first, second, whole = found["first"], found["second"], found["composite"]
    made = table("\nBy dimension", "dimension", "second compared with first", "difference")
    for one in (whole, *found["dimensions"]):
        made.add_row(cell(one["name"], longest=60), _answer(one["answer"]), _span(one["low"], one["high"], sign="+"))
    sides = (("first", _side(first)), ("second", _side(second)))
    said = Text.assemble("\nThe second is ", _answer(whole["answer"]), f": {_span(whole['low'], whole['high'], sign='+')}")
    notes = [found["note"]] if found["note"] else []
    notes += [f"graded under different contracts: {one}" for one in found["contracts_differ"]]
    return Group(_grid(sides), said, *(Text(visible(note), style="yellow") for note in notes), made)


def _side(side: Mapping[str, Any]) -> str:
    composite = _span(side["composite_low"], side["composite_high"])
    return f"{side['run_id']} of {side['agent']} {side['agent_version']}: composite {composite}, verdict {side['outcome'] or 'pending'}"


def _answer(answer: str) -> Text:
    return Text(answer.replace("_", " "), style=ANSWERS[answer])


def _grid(facts: Any) -> Table:
    made = Table.grid(padding=(0, 2))
    for name, value in facts:
        made.add_row(Text(name, style="bold"), Text(visible(value)))
    return made


def _facts(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    subject, evaluator, said, outcomes = found["evaluated"], found["evaluator"], found["verdict"], found["outcomes"]
    yield (
        "run",
        f"{subject['run_id']} of {subject['agent']}, version {subject['agent_version']}, environment {subject['environment']}",
    )
    rubric = f"rubric {evaluator['rubric']} {evaluator['rubric_version']}".strip() if evaluator["rubric"] else "no rubric"
    risk = f", {evaluator['risk']}" if evaluator["risk"] else ""
    under = f"contract {evaluator['contract']}, code {evaluator['revision'] or UNKNOWN}"
    yield "evaluated by", f"{', '.join(evaluator['models']) or 'code'}{_family(evaluator)}; {rubric}{risk}; {under}"
    yield "date", found["date"] or UNKNOWN
    tiers = f" ({' to '.join(said['tiers'])})" if said["tiers"] else ""
    yield "verdict", f"{said['outcome'] or 'pending'}{tiers}: {said['action']}"
    if said["composite_low"] is not None:
        yield "composite", f"{_span(said['composite_low'], said['composite_high'])}, bar {said['bar'] or UNKNOWN}"
    yield "outcomes", ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in outcomes.items())
    if found["coverage"] is not None:
        bounds = f"{found['pass_rate_low']:.0%} to {found['pass_rate_high']:.0%}"
        yield "coverage", f"{found['coverage']:.0%} decided; passed {bounds}, with the undecided as fails and as passes"
    if found["for_a_person"]:
        yield "for a person", ", ".join(found["for_a_person"])


def _family(evaluator: Mapping[str, Any]) -> str:
    families = f" ({', '.join(evaluator['families'])})" if evaluator["families"] else ""
    return f"{families}, of the agent's own family" if evaluator["same_family"] else families


def _scores(title: str, parts: Sequence[Mapping[str, Any]]) -> RenderableType:
    made = table(title, "name", "outcome, authority", "score", "weight, gate", "rationale and quote")
    for one in parts:
        outcome = str(one["outcome"] or "pending")
        shown = ", ".join(filter(None, (outcome, one["authority"], "" if one["counts"] else "shown only")))
        score = UNKNOWN if one["score"] is None else f"{one['score']:g}"
        held = _held(one)
        why = Text("\n").join(part for part in (cell(one["rationale"]), cell(one["quote"], style="dim")) if part)
        made.add_row(
            cell(one["name"], longest=60),
            Text(shown, style=COLOURS.get(outcome, "cyan")),
            score,
            held,
            why,
        )
    return made


def _held(one: Mapping[str, Any]) -> str:
    """Say what a part weighs and whether it gates: ``0.35, gate 3``; ``hard`` for a criterion, ``gates`` for a check."""
    if one["gate"] is None:
        return "gates" if one["gates"] else one["weight"] or ""
    return f"{one['weight']}, gate {one['gate']}" if one["weight"] is not None else "hard"


def _span(low: float, high: float, sign: str = "") -> str:
    ends = [f"{end:{sign}.6g}" if end else "0" for end in (low, high)]
    return ends[0] if low == high else " to ".join(ends)
