"""Show: what is in the store, for a terminal or a pipe. Nothing unknown is shown as 0, and text from spans is only ever text."""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.apps.text import one_line
from pipeline.model.time import SECOND

COLOURS: Final = {"pass": "green", "fail": "red", "insufficient_evidence": "yellow", "grader_error": "magenta"}
UNKNOWN: Final = "–"
PIPED: Final = 120
"""Columns where no terminal says how many it has."""
ROOMY: Final = 120
"""Columns from which the longest verdict needs no second line."""
DIGITS: Final = 8
"""Of a run's id in a list; a prefix finds the run."""
NAME: Final = 23
"""Columns of an agent's name at most."""
REASON: Final = 37
"""Columns that a reason gets before the tools get more than the least."""
COST: Final = 8
"""Columns of the cost."""
_LEAST: Final = Decimal("0.0001")
_MANY: Final = 100
TOOLS: Final = 14
"""Columns of the tools at least."""


def console(*, to_stderr: bool = False) -> Console:
    """Return the console for what a command says: nothing in a text is read as markup, and a pipe is wide enough to read."""
    made = Console(markup=False, emoji=False, highlight=False, stderr=to_stderr)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = PIPED
    return made


def table(title: str, *columns: str) -> Table:
    """Return a table without a frame, so that its width is its text's."""
    made = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def cell(value: object, style: str = "", longest: int = 400) -> Text:
    """Return text for a cell."""
    return Text(one_line(value, longest), style=style)


def scoreboard(
    runs: Sequence[Mapping[str, Any]], accounting: Mapping[str, Any], width: int, agent: str = "", flag: str = ""
) -> RenderableType:
    """Return the latest runs, one a row, and the accounting below; at most ``width`` columns wide.

    The accounting is of the whole project, also where only runs of an agent or with a flag are listed; then it says so.
    """
    chosen = "".join(
        (f" of agent {one_line(agent, NAME)!r}" if agent else "", f" with flag {one_line(flag, NAME)!r}" if flag else "")
    )
    below: list[RenderableType] = [Text(f"Not only runs{chosen}, but all of the project:")] if chosen else []
    below.append(accounting_line(accounting))
    if not runs:
        return Group(Text(f"No runs{chosen} here."), *below)
    agents = [cell(_agent(run), longest=80) for run in runs]
    verdict = max(len(word) for word in COLOURS) if width >= ROOMY else len("insufficient_")
    named = min(max(len(one) for one in agents), NAME if width >= ROOMY else NAME - 3)
    rest = max(width - DIGITS - len("steps") - COST - verdict - named - 6 * 2, 2 * TOOLS)
    tools = max(rest - REASON, TOOLS) if rest - REASON < TOOLS else min(rest - REASON, 2 * TOOLS)
    made = table("Runs", "run", "agent", "steps", "cost", "tools", "verdict", "first reason")
    for column, columns in zip(made.columns, (DIGITS, named, 5, COST, tools, verdict, rest - tools), strict=True):
        column.max_width = columns
    made.columns[2].justify = made.columns[3].justify = "right"
    for run, name in zip(runs, agents, strict=True):
        said = (_tools(run, tools), _verdict(run), cell(run["reason"] or ""))
        made.add_row(str(run["run_id"])[:DIGITS], name, str(run["steps"]), _cost(run["cost_usd"]), *said)
    return Group(made, *below)


def _agent(run: Mapping[str, Any]) -> str:
    cohort = run["cohort"]
    version = "" if cohort["version"] == "unknown" else f" {cohort['version']}"
    return f"{cohort['agent']}{version}{' (converted)' if run['converted'] else ''}"


def _cost(amount: str | Decimal | None) -> str:
    """Return a cost in the width of its column, to a hundredth of a cent where it is that small; the run has all its digits."""
    if amount is None:
        return UNKNOWN
    exact = Decimal(amount)
    return "<$0.0001" if 0 < exact < _LEAST else f"${exact:.4f}" if exact < _MANY else f"${exact:,.0f}"


def _tools(run: Mapping[str, Any], width: int) -> Text:
    """Two lines at most: the first names, how many more there are, and how many calls failed."""
    names = [one_line(name, width - 1) for name in run["tools"]]
    shown = ", ".join(names) or UNKNOWN
    failed = f"({run['failed_calls']} failed)" if run["failed_calls"] else ""
    if len(shown) > (width if failed else 2 * width):
        shown = f"{one_line(names[0], width - 4)} +{len(names) - 1}" if len(names) > 1 else names[0]
    between = "\n" if len(shown) + len(failed) >= width else " "
    return Text(f"{shown}{between}{failed}" if failed else shown)


def _verdict(run: Mapping[str, Any]) -> Text:
    said = str(run["verdict"] or run["run_class"])
    return Text(said, style=COLOURS.get(said, "cyan"))


def accounting_line(accounting: Mapping[str, Any]) -> RenderableType:
    """Return the identity that holds at every moment: received = judged + unsampled + unresolved + pending."""
    unresolved = accounting["unresolved"]
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(unresolved.items()))
    line = Text(f"{counted(accounting['received'], 'run')} received", style="bold")
    line.append(
        f" = {accounting['judged']} judged + {accounting['unsampled']} unsampled + {sum(unresolved.values())} unresolved"
        f"{f' ({reasons})' if reasons else ''} + {accounting['pending']} pending",
        style="not bold",
    )
    beside = Text(
        f"{counted(accounting['open_traces'], 'trace')} open; {counted(accounting['not_an_agent_run'], 'trace')} held no agent's run"
    )
    return Group(line, beside)


def counted(number: int, noun: str) -> str:
    """Return how many of what."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def dollars(amount: str | Decimal | None) -> str:
    """Return an amount of money with all its digits: it is exact."""
    return UNKNOWN if amount is None else f"{Decimal(amount):f} USD"


def utc(ns: int) -> str:
    """Return a time as people read it: UTC, to the second."""
    return datetime.fromtimestamp(ns // SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S") if ns else UNKNOWN


def trips(made: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return what gates said, in order."""
    shown = table("Gates", "gate", "agent", "environment", "said", "why")
    for trip in made:
        cohort = trip["cohort"]
        said = str(trip["transition"])
        shown.add_row(
            cell(trip["gate"], longest=60),
            cell(cohort["agent"], longest=60),
            cell(cohort["environment"], longest=60),
            Text(said, style="green" if said == "cleared" else "red"),
            cell(trip["why"]),
        )
    return shown
