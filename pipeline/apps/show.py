"""Show: what is in the store, for a terminal. Every table has its numbers' names; nothing unknown is shown as 0."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pipeline.model.time import SECOND

COLOURS: Final = {"pass": "green", "fail": "red", "insufficient_evidence": "yellow", "grader_error": "magenta"}
UNKNOWN: Final = "–"


def scoreboard(runs: Sequence[Mapping[str, Any]], accounting: Mapping[str, Any]) -> RenderableType:
    """Return the latest runs, one a row, and the accounting below."""
    table = Table(title="Runs", title_justify="left", expand=True)
    for name, options in (
        ("run", {"no_wrap": True}),
        ("agent", {"overflow": "fold"}),
        ("steps", {"justify": "right"}),
        ("tools", {"overflow": "ellipsis", "no_wrap": True, "max_width": 34}),
        ("verdict", {"no_wrap": True}),
        ("first reason", {"overflow": "ellipsis", "no_wrap": True, "ratio": 1}),
    ):
        table.add_column(name, **options)
    for run in runs:
        table.add_row(
            str(run["run_id"])[:10],
            escape(_agent(run)),
            str(run["steps"]),
            escape(_tools(run)),
            _verdict(run),
            escape(str(run["reason"] or "")),
        )
    return Group(table, accounting_line(accounting))


def _agent(run: Mapping[str, Any]) -> str:
    cohort = run["cohort"]
    version = "" if cohort["version"] == "unknown" else f" {cohort['version']}"
    return f"{cohort['agent']}{version}{' (converted)' if run['converted'] else ''}"


def _tools(run: Mapping[str, Any]) -> str:
    shown = ", ".join(run["tools"]) or UNKNOWN
    return f"{shown} ({run['failed_calls']} failed)" if run["failed_calls"] else shown


def _verdict(run: Mapping[str, Any]) -> Text:
    said = str(run["verdict"] or run["run_class"])
    return Text(said, style=COLOURS.get(said, "cyan"))


def accounting_line(accounting: Mapping[str, Any]) -> RenderableType:
    """Return the identity that holds at every moment: received = judged + unsampled + unresolved + pending."""
    unresolved = accounting["unresolved"]
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(unresolved.items()))
    total = sum(unresolved.values())
    return Text.from_markup(
        f"[bold]{accounting['received']} runs received[/] = {accounting['judged']} judged + {accounting['unsampled']} unsampled + "
        f"{total} unresolved{f' ({escape(reasons)})' if reasons else ''} + {accounting['pending']} pending; "
        f"{accounting['open_traces']} traces open, {accounting['not_an_agent_run']} no agent's run"
    )


def run(detail: Mapping[str, Any]) -> RenderableType:
    """Return everything that is stored of one run."""
    line = detail["line"]
    cohort = line["cohort"]
    head = Table.grid(padding=(0, 2))
    facts = {
        "run": line["run_id"],
        "trace": line["trace_id"],
        "agent": f"{cohort['agent']}, version {cohort['version']}, environment {cohort['environment']}",
        "time": f"{utc(line['start_ns'])} to {utc(line['end_ns'])} UTC",
        "ended": f"{detail['ended']}{': ' + detail['error'] if detail['error'] else ''}",
        "class": f"{line['run_class']} {line['class_reason']}",
        "verdict": f"{line['verdict'] or UNKNOWN}: {line['reason'] or UNKNOWN}",
        "sampling": f"{detail['sampling_plan']}, inclusion probability {detail['inclusion_probability']:g}",
        "models": f"{', '.join(detail['models']) or UNKNOWN}, {detail['model_calls']} calls, {_tokens(detail)}",
        "sub-agents": ", ".join(detail["agents"]) or UNKNOWN,
        "flags": ", ".join(detail["flags"]) or UNKNOWN,
    }
    if not detail["live"]:
        facts["retracted"] = f"merged into {detail['merged_into']}"
    for name, value in facts.items():
        head.add_row(Text(name, style="bold"), Text(value))
    parts: list[RenderableType] = [head, _text("request", detail["request"]), _text("answer", detail["answer"])]
    parts += [_calls(detail["tool_calls"]), _results(detail["results"])]
    parts += [trips(detail["trips"])] if detail["trips"] else []
    parts += [Text(f"feedback {one['value']:g} by {one['author'] or UNKNOWN}: {one['comment']}") for one in detail["feedback"]]
    return Group(*parts)


def _tokens(detail: Mapping[str, Any]) -> str:
    given, taken = detail["input_tokens"], detail["output_tokens"]
    return f"{UNKNOWN if given is None else given} tokens in, {UNKNOWN if taken is None else taken} out"


def utc(ns: int) -> str:
    """Return a time as people read it: UTC, to the second."""
    return datetime.fromtimestamp(ns // SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S") if ns else UNKNOWN


def trips(made: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return what gates said, in order."""
    table = Table(title="Gates", title_justify="left", expand=True)
    for name in ("gate", "agent", "environment", "transition", "why"):
        table.add_column(name, overflow="fold")
    for trip in made:
        cohort = trip["cohort"]
        said = str(trip["transition"])
        cells = (trip["gate"], cohort["agent"], cohort["environment"])
        table.add_row(
            *(escape(str(cell)) for cell in cells),
            Text(said, style="red" if said == "fired" else "green"),
            escape(str(trip["why"])),
        )
    return table


def _text(title: str, text: str | None) -> RenderableType:
    return Panel(Text(text or UNKNOWN), title=title, title_align="left")


def _calls(calls: Sequence[Mapping[str, Any]]) -> RenderableType:
    table = Table(title="Tool calls", title_justify="left", expand=True)
    for name in ("tool", "arguments", "result", "error"):
        table.add_column(name, overflow="fold")
    for call in calls:
        arguments = call.get("arguments")
        shown = call.get("raw_arguments") or UNKNOWN if arguments is None else str(arguments)
        table.add_row(
            *(escape(str(cell)) for cell in (call["name"], shown, call.get("result") or UNKNOWN, call.get("error") or ""))
        )
    return table


def _results(results: Sequence[Mapping[str, Any]]) -> RenderableType:
    table = Table(title="Results", title_justify="left", expand=True)
    for name in ("dimension", "kind", "outcome", "value", "authority", "reason", "evidence"):
        table.add_column(name, overflow="fold")
    for one in results:
        outcome = str(one["outcome"] or "pending")
        value = UNKNOWN if one["value"] is None else f"{one['value']:g}"
        if one["value"] is None and one["lower"] is not None and one["upper"] is not None:
            value = f"{one['lower']:g} to {one['upper']:g}"
        cells = (one["authority"] or "", one["reason"], one["evidence"])
        table.add_row(
            one["dimension"],
            one["kind"],
            Text(outcome, style=COLOURS.get(outcome, "cyan")),
            value,
            *(escape(str(cell)) for cell in cells),
        )
    return table


def print_to_terminal(what: RenderableType) -> None:
    """Print; outside a terminal wide enough that no table is cut."""
    console = Console()
    (console if console.is_terminal else Console(width=180)).print(what)
