"""What ``tracegrade judge`` does: a trial in the open, and what was spent."""
# ruff: noqa: PLC0415 - a command imports what it needs: the engine and the judge's client alone take seconds

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import msgspec

from pipeline.apps.commands import ask, print_json, print_line
from pipeline.errors import ConfigurationError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeline.apps.trial import Said, Trial

UNDECIDED = 1
"""Exit code where the judge broke: what it said is no verdict."""


def try_(config: Path | None, run_id: str, dimension: str, *, json: bool) -> int:
    """Judge one dimension of a run and print all that was said."""
    from pipeline.config.load import load
    from pipeline.model.result import Outcome

    settings = load(config)
    prefix = run_id.strip()
    if not prefix:
        raise ConfigurationError("the run's id is empty; write as much of its beginning as is unique")
    if settings.judge.base_url is None:
        raise ConfigurationError("no judge is configured; write its endpoint as judge.base_url (docs/judge.md)")
    detail = ask(settings, f"/api/runs/{quote(prefix, safe='')}", lambda store, project: store.run_detail(project, prefix))
    from pipeline.apps.trial import trial

    made = asyncio.run(trial(settings, detail, dimension, os.environ))
    if json:
        print_json(made)
    else:
        for line in trial_lines(made):
            print_line(line)
    return UNDECIDED if made.judgment.outcome is Outcome.GRADER_ERROR else 0


def trial_lines(made: "Trial") -> "Iterator[str]":
    """Yield a trial as it reads in a terminal."""
    yield f"run {made.run_id}, {made.dimension} under contract {made.contract}"
    for asked in made.asked:
        takes = f"takes {ability_line(msgspec.to_builtins(asked.ability))}" if asked.ability else "answered nothing yet"
        yield f"{asked.endpoint}: it {takes}"
    if not made.asked:
        yield "nobody was asked"
    for number, one in enumerate(made.calls, start=1):
        if number == 1:
            yield from _prompt(one)
        vote = one.vote
        again = ", asked once more" if vote.key.attempt else ""
        yield f"--- reply {number} of {len(made.calls)}: vote {vote.key.vote + 1}, {vote.model}{again}"
        yield vote.raw_reply or "(empty)"
        score = "no score" if vote.score is None else f"score {vote.score:g}"
        yield f"--- read as: {vote.outcome}, {score}: {vote.reason}"
        yield f"    {tokens(vote.input_tokens)} in, {tokens(vote.output_tokens)} out, {dollars(vote.cost_usd)}"
    yield from _ending(made)


def _ending(made: "Trial") -> "Iterator[str]":
    said = made.judgment
    score = "no score" if said.score is None else f"score {said.score:g}"
    yield f"=== {said.outcome}, {score}: {said.reason}"
    if said.quote:
        yield f"    quoted: {said.quote}"
    yield f"    the judge is {made.authority} here: {'what it says counts' if made.counts else 'its scores are shown and decide nothing'}"
    flags = f"; flags: {', '.join(said.flags)}" if said.flags else ""
    yield f"    {dollars(said.cost_usd)} in all{flags}. Nothing of this was stored."


def _prompt(one: "Said") -> "Iterator[str]":
    for message in one.prompt:
        yield f"--- prompt, {message.role}"
        yield message.text


def ability_line(ability: Mapping[str, Any]) -> str:
    """Return what an endpoint takes, in words."""
    form = {
        "json_schema": "a JSON Schema for the reply",
        "json_object_schema": "a JSON object with a schema",
        "json_object": "a JSON object without a schema",
        "text": "no form for the reply (it is asked for in words)",
    }[ability["form"]]
    parts = [form, "no limit of tokens" if ability["limit"] == "none" else ability["limit"]]
    parts += ["seeds" if ability["seed"] else "no seeds", "a temperature" if ability["temperature"] else "no temperature"]
    usage = {True: "counts tokens", False: "does not count tokens: costs are unknown", None: ""}[ability["usage"]]
    return ", ".join(parts) + (f"; it {usage}" if usage else "")


def cost(config: Path | None, limit: int, *, json: bool) -> int:
    """Print what the calls of the project came to."""
    from pipeline.config.load import load

    path = f"/api/judge/cost?{urlencode({'limit': limit})}"
    days = ask(load(config), path, lambda store, project: store.judge.costs(project, limit))
    if json:
        print_json(days)
        return 0
    from pipeline.apps import show

    if days:
        show.console().print(_table(days))
    print_line(total_line(days))
    return 0


def _table(days: Sequence[Mapping[str, Any]]) -> "RenderableType":
    from pipeline.apps import show

    columns = ("day (UTC)", "project", "dimension", "model", "calls", "failed", "lost", "tokens in", "out", "dollars", "unsure")
    made = show.table("What the judge's calls came to", *columns)
    for column in made.columns[4:]:
        column.justify = "right"
    for day in days:
        names = [show.cell(day[name], longest=40) for name in ("day", "project", "dimension", "model")]
        counts = [str(day["calls"]), str(day["failed"]), str(day["lost"])]
        used = [tokens(day["input_tokens"]), tokens(day["output_tokens"])]
        unsure = f"{day['unsure_usd']:.4f}" if day["unsure_usd"] else ""
        made.add_row(*names, *counts, *used, dollars(day["cost_usd"]), unsure)
    return made


def total_line(days: Sequence[Mapping[str, Any]]) -> str:
    """Return the sum of what is shown; what nobody knows is told apart."""
    from pipeline.apps import show

    if not days:
        return "the judge was never asked"
    known = sum(day["cost_usd"] or 0 for day in days)
    said = f"{show.counted(sum(day['calls'] for day in days), 'call')}, {known:.4f} dollars known"
    if unpriced := sum(day["unpriced"] for day in days):
        said += f"; {show.counted(unpriced, 'answered call')} without a known cost"
    if lost := sum(day["lost"] for day in days):
        said += f"; {show.counted(lost, 'call')} without an answer that was kept, made again where it was still wanted"
    return said


def dollars(cost_usd: float | None) -> str:
    """Return a cost; one that nobody knows is not 0."""
    return "cost unknown" if cost_usd is None else f"{cost_usd:.4f}"


def tokens(count: int | None) -> str:
    """Return a count of tokens; one that nobody knows is not 0."""
    return "unknown" if count is None else str(count)
