"""Show a run: what it did, and everything that was said of it, for a terminal or a pipe."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeline.apps.show import COLOURS, UNKNOWN, cell, counted, dollars, table, trips, utc
from pipeline.apps.text import as_json, visible
from pipeline.errors import ConfigurationError

FIRST: Final = ("verdict", "composite")
"""Dimensions that stand at the top."""
LONGEST: Final = 600
"""Characters of an argument or a result of a tool; ``--json`` has all of them."""


def run(detail: Mapping[str, Any]) -> RenderableType:
    """Return everything that is stored of one run."""
    head = Table.grid(padding=(0, 2))
    for name, value in _facts(detail):
        head.add_row(Text(name, style="bold"), Text(visible(value)))
    parts: list[RenderableType] = [head, *_text("Request", detail["request"]), *_text("Answer", detail["answer"])]
    parts += [_agents(detail["parts"])] if len(detail["parts"]) > 1 else []
    parts += [_calls(detail["tool_calls"], of_several=len(detail["parts"]) > 1)] if detail["tool_calls"] else []
    parts += [_results(detail["results"])] if detail["results"] else []
    parts += [trips(detail["trips"])] if detail["trips"] else []
    parts += [
        Text(visible(f"Feedback {one['value']:g} by {one['author'] or UNKNOWN}: {one['comment']}")) for one in detail["feedback"]
    ]
    return Group(*parts)


def of_part(detail: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return of a run what one agent of it did, and those below it: their ``parts`` and ``tool_calls``.

    Raises:
        ConfigurationError: the run has no such agent; the sentence lists those it has.
    """
    found = [one for one in detail["parts"] if _is_in(one["path"], path)]
    if not found:
        listed = ", ".join(repr(one["path"]) for one in detail["parts"] if one["path"]) or "none"
        raise ConfigurationError(f"the run has no sub-agent {path!r}; those it has: {listed}")
    calls = [call for call in detail["tool_calls"] if _is_in(call.get("agent", ""), path)]
    return {"run_id": detail["line"]["run_id"], "parts": found, "tool_calls": calls}


def part(of_it: Mapping[str, Any]) -> RenderableType:
    """Return what :func:`of_part` found, for a reader."""
    parts, calls = of_it["parts"], of_it["tool_calls"]
    return Group(_agents(parts), _calls(calls, of_several=len(parts) > 1)) if calls else _agents(parts)


def _is_in(path: str, top: str) -> bool:
    return not top or path == top or path.startswith(f"{top}/")


def _facts(detail: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    line = detail["line"]
    cohort = line["cohort"]
    yield "run", line["run_id"]
    yield "trace", line["trace_id"]
    if not detail["live"]:
        yield "retracted", f"merged into {detail['merged_into']}"
    yield "agent", f"{cohort['agent']}, version {cohort['version']}, environment {cohort['environment']}"
    if detail["agents"]:
        yield "sub-agents", ", ".join(detail["agents"])
    yield "time", f"{utc(line['start_ns'])} to {utc(line['end_ns'])} UTC"
    yield "verdict", _joined(line["verdict"] or UNKNOWN, line["reason"])
    yield "counts as", _joined(line["run_class"], line["class_reason"])
    yield "ended with", _joined(detail["ended"], detail["error"])
    yield "sampling", f"{detail['sampling_plan']}, inclusion probability {detail['inclusion_probability']:g}"
    retries = f" ({detail['retries']} made again)" if detail["retries"] else ""
    calls = f"{counted(detail['model_calls'], 'call')}{retries}"
    yield "models", f"{', '.join(detail['models']) or UNKNOWN}; {calls}; {_tokens(detail)}"
    yield "cost", _cost(detail)
    if detail["task_kind"] not in ("", cohort["agent"]):
        yield "task", detail["task_kind"]
    if detail["hand_offs"]:
        yield "hand-offs", ", ".join(f"{one['source']} → {one['target']}" for one in detail["hand_offs"])
    yield (
        "spans",
        f"{line['steps']}, read as {', '.join(line['dialects']) or UNKNOWN}{' (converted)' if line['converted'] else ''}",
    )
    yield "graded by", f"code {detail['revision'] or UNKNOWN}"
    if detail["flags"]:
        yield "flags", ", ".join(detail["flags"])


def _cost(detail: Mapping[str, Any]) -> str:
    """The cost with where it is from, or why it is not known; beside it what the senders say."""
    known = detail["cost_usd"] is not None
    cost = f"{dollars(detail['cost_usd'])}, by prices {detail['cost_prices']}" if known else f"unknown: {detail['cost_unknown']}"
    reported = detail["reported_cost_usd"]
    return cost if reported is None else f"{cost}; the senders report {dollars(Decimal(repr(reported)))}"


def _joined(first: str, second: str | None) -> str:
    return f"{first}: {second}" if second else first


def _tokens(spent: Mapping[str, Any], suffix: str = "_tokens") -> str:
    given, taken = spent[f"input{suffix}"], spent[f"output{suffix}"]
    return f"{UNKNOWN if given is None else given} tokens in, {UNKNOWN if taken is None else taken} out"


def _text(title: str, text: str | None) -> tuple[RenderableType, ...]:
    return Text(f"\n{title}", style="bold"), Padding(Text(visible(text or UNKNOWN)), (0, 2))


def _agents(parts: Sequence[Mapping[str, Any]]) -> RenderableType:
    made = table("\nAgents", "path", "agent", "steps", "model calls", "tool calls", "tokens")
    for one in parts:
        failed = f" ({one['failed_calls']} failed)" if one["failed_calls"] else ""
        cells = (one["steps"], one["model_calls"], f"{one['tool_calls']}{failed}")
        made.add_row(cell(one["path"] or UNKNOWN), cell(one["agent"], longest=60), *map(cell, cells), _tokens(one["usage"], ""))
    return made


def _calls(calls: Sequence[Mapping[str, Any]], *, of_several: bool = False) -> RenderableType:
    made = table("\nTool calls", *(("by",) if of_several else ()), "tool", "arguments", "result")
    for call in calls:
        arguments = call.get("arguments")
        shown = call.get("raw_arguments") if arguments is None else arguments
        error = call.get("error")
        result = Text(_joined("failed", error), style="red") if error else cell(_plain(call.get("result")), longest=LONGEST)
        by = (cell(call.get("agent") or UNKNOWN, longest=60),) if of_several else ()
        made.add_row(*by, cell(call["name"], longest=60), cell(_plain(shown), longest=LONGEST), result)
    return made


def _plain(value: Any) -> str:
    if value is None or value == "":
        return UNKNOWN
    return value if isinstance(value, str) else msgspec.json.format(as_json(value), indent=0)


def _results(results: Sequence[Mapping[str, Any]]) -> RenderableType:
    made = table("\nResults", "dimension", "outcome", "value", "by", "reason and evidence")
    for one in sorted(results, key=lambda one: FIRST.index(one["dimension"]) if one["dimension"] in FIRST else len(FIRST)):
        outcome = str(one["outcome"] or "pending")
        made.add_row(
            cell(one["dimension"], longest=60),
            Text(outcome, style=COLOURS.get(outcome, "cyan")),
            _value(one),
            one["kind"] if not one["authority"] else f"{one['kind']}, {one['authority']}",
            _why(one),
        )
    return made


def _value(one: Mapping[str, Any]) -> str:
    if one["value"] is None and one["lower"] is not None and one["upper"] is not None:
        return f"{one['lower']:g} to {one['upper']:g}"
    return UNKNOWN if one["value"] is None else f"{one['value']:g}"


def _why(one: Mapping[str, Any]) -> Text:
    said = cell(one["reason"])
    evidence = cell(one["evidence"], style="dim", longest=LONGEST)
    return Text("\n").join(part for part in (said, evidence) if part)
