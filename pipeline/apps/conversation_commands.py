"""What ``tracegrade conversations`` and ``tracegrade conversation`` do: the unit above runs, for a terminal or a program."""
# ruff: noqa: PLC0415 - a command imports what it needs: the engine alone takes seconds

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from pipeline.apps.commands import ask, print_json
from pipeline.errors import ConfigurationError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeline.model.conversation import ConversationDetail
    from sinks.clickhouse.store import Store

LONGEST: Final = 120
"""Characters of a request or an answer in a table."""
_VERDICTS: Final = (
    ("passed", "pass"),
    ("failed", "fail"),
    ("insufficient_evidence", "insufficient evidence"),
    ("grader_error", "grader error"),
    ("pending", "pending"),
)


class UnknownConversationError(ConfigurationError):
    """No run of the project names this conversation."""


def conversations(config: Path | None, limit: int, agent: str, *, json: bool) -> int:
    """Show the conversations that ended last."""
    from pipeline.apps import show
    from pipeline.config.load import load

    found = ask(
        load(config),
        f"/api/conversations?{urlencode({'limit': limit, 'agent': agent})}",
        lambda store, project: store.conversations.latest(project, limit, agent),
    )
    if json:
        print_json(found)
    else:
        show.console().print(_list(found))
    return 0


def conversation(config: Path | None, conversation_id: str, limit: int, *, json: bool) -> int:
    """Show one conversation and its last turns."""
    from pipeline.apps import show
    from pipeline.config.load import load

    async def direct(store: "Store", project: str) -> Any:
        return known(await store.conversations.one(project, conversation_id, limit), project, conversation_id)

    path = f"/api/conversation?{urlencode({'id': conversation_id, 'limit': limit})}"
    detail = ask(load(config), path, direct)
    if json:
        print_json(detail)
    else:
        show.console().print(_detail(detail))
    return 0


def known(detail: "ConversationDetail | None", project: str, conversation_id: str) -> "ConversationDetail":
    """Return what was found, or raise UnknownConversationError."""
    if detail is None:
        raise UnknownConversationError(
            f"project {project!r} has no conversation {conversation_id!r}; tracegrade conversations lists those it has"
        )
    return detail


def _list(found: Sequence[Mapping[str, Any]]) -> "RenderableType":
    from pipeline.apps import show

    if not found:
        return "No conversations here: no run says which one it is part of."
    made = show.table("Conversations", "conversation", "runs", "verdicts", "tokens in, out", "last", "agents")
    made.columns[1].justify = "right"
    for one in found:
        cells = (str(one["runs"]), _verdicts(one["outcomes"]), _tokens(one), show.utc(one["end_ns"]), ", ".join(one["agents"]))
        made.add_row(show.cell(one["id"], longest=60), *map(show.cell, cells))
    return made


def _detail(detail: Mapping[str, Any]) -> "RenderableType":
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from pipeline.apps import show
    from pipeline.apps.text import visible

    one = detail["conversation"]
    head = Table.grid(padding=(0, 2))
    for name, value in (
        ("conversation", one["id"]),
        ("agents", ", ".join(one["agents"])),
        ("time", f"{show.utc(one['start_ns'])} to {show.utc(one['end_ns'])} UTC"),
        ("runs", f"{one['runs']}: {_verdicts(one['outcomes'])}"),
        ("tokens", f"{_tokens(one)}{_missing(one['without_tokens'])}"),
        ("cost", f"{_cost(one['cost_usd'])}{_missing(one['without_cost'], 'known of')}"),
    ):
        head.add_row(Text(name, style="bold"), Text(visible(value)))
    made = show.table(f"\nTurns ({_shown(detail)})", "run", "agent", "start", "request", "answer", "verdict")
    for turn in detail["turns"]:
        said = str(turn["verdict"] or turn["run_class"])
        made.add_row(
            turn["run_id"][: show.DIGITS],
            show.cell(turn["cohort"]["agent"], longest=60),
            show.utc(turn["start_ns"]),
            show.cell(turn["request"], longest=LONGEST),
            show.cell(show.UNKNOWN if turn["answer"] is None else turn["answer"], longest=LONGEST),
            Text(said, style=show.COLOURS.get(said, "cyan")),
        )
    return Group(head, made)


def _shown(detail: Mapping[str, Any]) -> str:
    every, shown = detail["conversation"]["runs"], len(detail["turns"])
    return "all" if shown == every else f"the last {shown}"


def _verdicts(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{outcomes[name]} {word}" for name, word in _VERDICTS if outcomes[name])


def _tokens(one: Mapping[str, Any]) -> str:
    from pipeline.apps.show import UNKNOWN

    return ", ".join(UNKNOWN if one[name] is None else str(one[name]) for name in ("input_tokens", "output_tokens"))


def _cost(cost_usd: str | None) -> str:
    from pipeline.apps.show import dollars

    return dollars(cost_usd)


def _missing(runs: int, word: str = "told by") -> str:
    """Say what a sum leaves out, so that nobody takes it for all of it."""
    from pipeline.apps.show import counted

    return f" (not {word} {counted(runs, 'run')})" if runs else ""
