"""What ``tracegrade judge compare`` does: which of two stored runs is better, or of many pairs how often which."""
# ruff: noqa: PLC0415 - a command imports what it needs: the engine and the judge's client alone take seconds

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from pipeline.apps.commands import ask, print_json, print_line
from pipeline.apps.judge_commands import UNDECIDED, dollars, tokens
from pipeline.errors import ConfigurationError

if TYPE_CHECKING:
    from pipeline.apps.pair_file import Pair
    from pipeline.config.tracegrade import TracegradeSettings
    from sinks.clickhouse.store import Store

Reported = Mapping[str, Any]


def compare(
    config: Path | None, runs: tuple[str, str] | None, file: Path | None, dimension: str, *, across_requests: bool, json: bool
) -> int:
    """Compare two runs, or the pairs of a file, and print what was said."""
    from pipeline.apps import pair_file
    from pipeline.apps.pair_file import Pair
    from pipeline.config.load import load

    settings = load(config)
    if (runs is None) == (file is None):
        raise ConfigurationError("name two runs, or a file of pairs with --pairs")
    if settings.judge.base_url is None:
        raise ConfigurationError("no judge is configured; write its endpoint as judge.base_url (docs/judge.md)")
    pairs = [Pair(_prefix(runs[0]), _prefix(runs[1]))] if runs is not None else pair_file.read(file) if file is not None else []
    report, stored = _compared(settings, pairs, dimension, across_requests=across_requests)
    if json:
        print_json({**report, "stored": stored})
    else:
        for line in lines(report, stored=stored):
            print_line(line)
    broken = report["tally"]["grader_errors"] if len(pairs) == 1 else 0
    return UNDECIDED if report["unjudged"] or broken else 0


def _compared(
    settings: "TracegradeSettings", pairs: "Sequence[Pair]", dimension: str, *, across_requests: bool
) -> tuple[Reported, bool]:
    """Return the report, and whether the calls of it are in the store: where an ``up`` has the folder open nobody else writes to it."""
    from pipeline.apps import served
    from pipeline.apps.pairs import compare_pairs
    from pipeline.judges.votes import VotesInMemory

    async def direct(store: "Store", project: str) -> Any:
        async def detail(prefix: str) -> Mapping[str, Any]:
            return _plain(await store.run_detail(project, prefix))

        report = await compare_pairs(settings, pairs, dimension, detail, store.judge, os.environ, across_requests=across_requests)
        await store.insert_contracts([report.contract])
        return report

    url = served.address(settings.store.path) if settings.store.url is None else None
    if url is None:
        return ask(settings, "", direct), True
    from_up = _details_of(settings, url)
    made = compare_pairs(settings, pairs, dimension, from_up, VotesInMemory(), os.environ, across_requests=across_requests)
    return _plain(asyncio.run(made)), False


def _details_of(settings: "TracegradeSettings", url: str) -> Callable[[str], Awaitable[Mapping[str, Any]]]:
    from pipeline.apps import served

    key = served.key_of(settings, os.environ)

    async def detail(prefix: str) -> Mapping[str, Any]:
        path = f"/api/runs/{quote(prefix, safe='')}"
        found: Mapping[str, Any] = await asyncio.to_thread(served.ask, url, path, key, None, settings.receiver.tls)
        return found

    return detail


def _plain(value: Any) -> Mapping[str, Any]:
    plain: Mapping[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return plain


def _prefix(run_id: str) -> str:
    prefix = run_id.strip()
    if not prefix:
        raise ConfigurationError("the run's id is empty; write as much of its beginning as is unique")
    return prefix


def lines(report: Reported, *, stored: bool) -> Iterator[str]:
    """Yield a report as it reads in a terminal: a single pair with its replies, many as a list and what they add up to."""
    yield f"{report['dimension']} under contract {report['contract_hash']}, {report['endpoint']}, {report['authority']} here"
    alone = len(report["pairs"]) + len(report["unjudged"]) == 1
    for pair in report["pairs"]:
        yield from _pair(pair) if alone else [_line(pair["judgment"])]
    for one in report["unjudged"]:
        yield f"{one['run_a']} {one['run_b']} not judged: {one['why']}"
    if not alone:
        yield from tally_lines(report["tally"])
        yield from agreement_lines(report["agreement"])
    kept = (
        "What was answered is stored and is not bought again."
        if stored
        else "The running up has the store: nothing of this was stored."
    )
    yield f"{dollars(report['cost_usd'])} in all. {kept}"


def _pair(pair: Reported) -> Iterator[str]:
    said = pair["judgment"]
    yield f"A {said['run_a']}"
    yield f"B {said['run_b']}"
    orders = (said["orders"]["forward"], said["orders"]["swapped"])
    for shown, read, reason, votes in zip("AB", orders, said["reasons"], pair["calls"], strict=True):
        for number, vote in enumerate(votes, start=1):
            yield f"--- reply with {shown} first" + (", asked once more" if number > 1 else "")
            yield vote["raw_reply"] or "(empty)"
            yield f"    {tokens(vote['input_tokens'])} in, {tokens(vote['output_tokens'])} out, {dollars(vote['cost_usd'])}"
        yield f"--- with {shown} first: {read}: {reason}"
    yield f"=== {_IN_WORDS[said['outcome']]}"
    if said["flags"]:
        yield f"    flags: {', '.join(said['flags'])}"


_IN_WORDS = {
    "a": "A is better, in both orders",
    "b": "B is better, in both orders",
    "tie": "a tie, in both orders",
    "conflict": "conflict: the two orders differ, so neither is better",
    "unknown": "unknown: the judge cannot tell them apart, and says so",
    "grader_error": "grader_error: a reply is no preference",
}


def _line(said: Reported) -> str:
    orders = said["orders"]
    return f"{said['run_a']} {said['run_b']} {said['outcome']} (A first: {orders['forward']}, B first: {orders['swapped']})"


def tally_lines(tally: Reported) -> Iterator[str]:
    """Yield what many pairs come to."""
    yield (
        f"{tally['pairs']} pairs: A better in {tally['a']}, B in {tally['b']}, ties {tally['ties']}; "
        f"undecided: {tally['conflicts']} conflicts, {tally['unknown']} unknown, {tally['grader_errors']} grader errors"
    )
    if tally["a_of_won"] is not None:
        bounds = f"{tally['if_undecided_b']:.3f} to {tally['if_undecided_a']:.3f} whatever the undecided are"
        yield f"A's share of the pairs that were won: {_share(tally['a_of_won'])}; {bounds}"
    place = tally["place"]
    if place["conflicts"] is not None:
        test = "" if place["p"] is None else f", sign test p = {place['p']:.2g}"
        yield f"conflicts: {_share(place['conflicts'])}; by the first place {place['first']}, by the second {place['second']}{test}"


def agreement_lines(agreement: Reported | None) -> Iterator[str]:
    """Yield how pairs agree with what people said of them."""
    if agreement is None:
        return
    yield f"against what people said of {agreement['pairs']}: single replies right {agreement['each_order']:.3f}"
    accuracy = "none is decided" if agreement["accuracy"] is None else f"right {_share(agreement['accuracy'])}"
    yield f"both orders: decided {_share(agreement['coverage'])}; of these {accuracy}"


def _share(share: Reported) -> str:
    return f"{share['share']:.3f} ({share['count']} of {share['of']}; {share['low']:.3f} to {share['high']:.3f})"
