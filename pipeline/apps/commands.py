"""Commands: what each does, as a function that returns its exit code. Those that read ask a running ``up``, else open the store."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlencode

import msgspec
from rich.progress import Progress

from collectors.replay import Protocol, Times, read, retime, send
from pipeline.apps import served, show
from pipeline.apps import up as running
from pipeline.apps.bench import measure
from pipeline.apps.demo.play import play
from pipeline.config.check import check as check_file
from pipeline.config.load import load
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError
from pipeline.judges.scripted import serve_forever
from pipeline.model.golden import GoldenCase
from pipeline.runtime.clock import SystemClock
from sinks.clickhouse.store import Store
from sinks.golden import files

T = TypeVar("T")


def up(config: Path | None) -> int:
    """Run the embedded pipeline until it is told to stop."""
    return asyncio.run(running.run(load(config)))


def demo(traces: Path | None, keep: Path | None) -> int:
    """Grade the bundled traces."""
    return asyncio.run(play(traces, keep))


def replay(files_: list[Path], endpoint: str, protocol: str, times: str, key: str, *, same_ids: bool) -> int:
    """Send recorded traces, showing progress."""
    recordings = list(read(files_))
    for recording in recordings:
        if recording.skipped:
            print_line(f"skipped {recording.path}: {recording.skipped}")
    total = sum(recording.spans for recording in recordings)
    requests = retime(recordings, _choice(Times, "--times", times), SystemClock().now(), same_ids=same_ids)
    spoken = _choice(Protocol, "--protocol", protocol) if protocol else None
    with Progress(transient=True) as progress:
        task = progress.add_task("sending spans", total=total)
        report = send(requests, endpoint, spoken, key, lambda done, _: progress.update(task, completed=done), total=total)
    print_line(f"sent {report.sent} spans of {total}; rejected {report.rejected}; failed {report.failed}")
    for message in report.messages:
        print_line(f"  {message}")
    return report.exit_code


def _choice(kind: type[T], option: str, text: str) -> T:
    try:
        return kind(text)  # type: ignore[call-arg]
    except ValueError:
        raise ConfigurationError(f"{option} is {text!r}; write one of {', '.join(cast('Any', kind))}") from None


def scoreboard(config: Path | None, limit: int, agent: str, *, as_json: bool) -> int:
    """Show the latest runs and the accounting."""

    async def direct(store: Store, project: str) -> Any:
        return {"runs": await store.scoreboard(project, limit, agent), "accounting": await store.accounting(project)}

    board = _ask(load(config), f"/api/scoreboard?{urlencode({'limit': limit, 'agent': agent})}", direct)
    _print(board, as_json=as_json, table=lambda: show.scoreboard(board["runs"], board["accounting"]))
    return 0


def run(config: Path | None, run_id: str, *, as_json: bool) -> int:
    """Show one run."""
    detail = _ask(load(config), f"/api/runs/{quote(run_id, safe='')}", lambda store, project: store.run_detail(project, run_id))
    _print(detail, as_json=as_json, table=lambda: show.run(detail))
    return 0


def golden_export(config: Path | None, folder: Path) -> int:
    """Write the golden cases of the project to a file."""
    settings = load(config)
    cases = _ask(settings, "/api/golden", lambda store, project: store.golden_cases(project))
    path = files.file_of(folder, settings.project)
    count = files.write(path, msgspec.convert(cases, list[GoldenCase]))
    print_line(f"wrote {count} cases to {path}")
    return 0


def check(config: Path | None, *, as_json: bool) -> int:
    """Say what is wrong with a configuration, or what it comes to."""
    report = check_file(config)
    if as_json:
        print_line(msgspec.json.encode(report).decode())
        return 0 if report.ok else 2
    for line in (*report.errors, *(f"warning: {one}" for one in report.warnings)):
        print_line(line)
    if report.summary is not None:
        for line in report.summary.lines():
            print_line(line)
        print_line(f"{report.file}: good")
    return 0 if report.ok else 2


def scripted_judge(port: int) -> int:
    """Serve the scripted judge until it is told to stop."""
    return asyncio.run(serve_forever(port))


def bench(traces: int, *, as_json: bool) -> int:
    """Measure and print."""
    report = asyncio.run(measure(traces))
    print_line(msgspec.json.encode(report).decode() if as_json else report.table())
    return 0


def print_line(text: str) -> None:
    """Print a line as it is."""
    print(text)  # noqa: T201 - what a command says


def _print(what: Any, *, as_json: bool, table: Callable[[], Any]) -> None:
    if as_json:
        print_line(msgspec.json.encode(what).decode())
    else:
        show.print_to_terminal(table())


def _ask(settings: TracegradeSettings, path: str, direct: Callable[[Store, str], Awaitable[Any]]) -> Any:
    """Return plain JSON values: from the ``up`` that has the folder open, else from the store itself."""
    if settings.store.url is None:
        url = served.address(settings.store.path)
        if url is not None:
            return served.ask(url, path, running.key_of(settings, os.environ))
        if not settings.store.path.exists():
            raise ConfigurationError(
                f"there is no data in {settings.store.path}; start tracegrade up, or name the folder as store.path in tracegrade.yaml"
            )

    async def opened() -> Any:
        store = await asyncio.to_thread(Store.open, settings.store)
        try:
            return await direct(store, settings.project)
        finally:
            await store.close()

    return msgspec.json.decode(msgspec.json.encode(asyncio.run(opened())))
