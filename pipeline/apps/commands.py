"""Commands: what each does, as a function that returns its exit code. Those that read ask a running ``up``, else open the store."""
# ruff: noqa: PLC0415 - a command imports what it needs: the engine and the judge's client alone take seconds

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import msgspec

from pipeline.apps.choice import print_choice
from pipeline.apps.text import as_json, visible
from pipeline.errors import ConfigurationError

if TYPE_CHECKING:
    from pipeline.config.tracegrade import TracegradeSettings
    from sinks.clickhouse.store import Store


def up(config: Path | None) -> int:
    """Run the embedded pipeline until it is told to stop."""
    from pipeline.config.load import load

    settings = load(config)
    from pipeline.apps.up import run

    return asyncio.run(run(settings))


def collector(config: Path | None) -> int:
    """Accept spans for Kafka until told to stop."""
    from pipeline.config.load import load

    settings = load(config)
    from pipeline.apps.collector import run

    return asyncio.run(run(settings))


def bridge(config: Path | None) -> int:
    """Carry foreign records until told to stop."""
    from pipeline.config.load import load

    settings = load(config)
    from pipeline.apps.bridge import run

    return asyncio.run(run(settings))


def worker(config: Path | None, stages: str) -> int:
    """Work on stages until told to stop."""
    from pipeline.config.load import load

    settings = load(config)
    from pipeline.apps.process import and_end
    from pipeline.apps.worker import run

    return asyncio.run(and_end(run(settings, stages)))


def quiet_exporters() -> None:
    """Keep their retries out of the log: the report says what they came to."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)


def scoreboard(config: Path | None, limit: int, agent: str, flag: str, *, json: bool) -> int:
    """Show the latest runs and the accounting."""
    from pipeline.apps import show
    from pipeline.config.load import load

    async def direct(store: "Store", project: str) -> Any:
        accounting = await store.accounting(project)
        return {"runs": await store.scoreboard(project, limit, agent, flag), "accounting": accounting}

    settings = load(config)
    board = ask(settings, f"/api/scoreboard?{urlencode({'limit': limit, 'agent': agent, 'flag': flag})}", direct)
    if json:
        print_json(board)
    else:
        (console := show.console()).print(show.scoreboard(board["runs"], board["accounting"], console.width, agent, flag))
        print_choice(settings)
    return 0


def run(config: Path | None, run_id: str, part: str | None = None, *, json: bool) -> int:
    """Show one run, or what one agent of it did."""
    from pipeline.apps import show, show_run
    from pipeline.config.load import load

    settings, prefix = load(config), run_id.strip()
    if not prefix:
        raise ConfigurationError("the run's id is empty; write as much of its beginning as is unique")
    detail = ask(settings, f"/api/runs/{quote(prefix, safe='')}", lambda store, project: store.run_detail(project, prefix))
    of_it = None if part is None else show_run.of_part(detail, part)
    if json:
        print_json(of_it or detail)
    else:
        show.console().print(show_run.run(detail) if of_it is None else show_run.part(of_it))
        print_choice(settings)
    return 0


def golden_export(config: Path | None, folder: Path, *, json: bool) -> int:
    """Write the golden cases of the project to a file."""
    from pipeline.config.load import load
    from pipeline.model.golden import GoldenCase
    from sinks.golden import files

    settings = load(config)
    cases = ask(settings, "/api/golden", lambda store, project: store.golden_cases(project))
    path = files.file_of(folder, settings.project)
    try:
        count = files.write(path, msgspec.convert(cases, list[GoldenCase]))
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}; name another folder") from error
    if json:
        print_json({"file": str(path), "cases": count})
    else:
        why = "" if count else f": no failing run of project {settings.project} has become a golden candidate yet"
        print_line(f"wrote {count} cases to {path}{why}")
    return 0


def topics_create(config: Path | None, *, json: bool) -> int:
    """Declare the topics on the cluster."""
    from pipeline.config.load import load

    settings = load(config)
    kafka = settings.kafka_or_refuse()
    from collectors.kafka.topics import create
    from pipeline.apps.show_lag import declared

    made = create(kafka, os.environ, settings.bridge.topics)
    if json:
        print_json(made)
        return 0
    for line in declared(made):
        print_line(line)
    return 0


def lag(config: Path | None, *, json: bool) -> int:
    """Show how far each stage is behind."""
    from pipeline.config.load import load

    settings = load(config)
    kafka = settings.kafka_or_refuse()
    from collectors.kafka.lag import lag as lag_of
    from pipeline.apps import show, show_lag

    groups = lag_of(kafka, os.environ, settings.bridge.topics)
    if json:
        print_json(groups)
    else:
        show.console().print(show_lag.lag(groups))
    return 0


def check(config: Path | None, *, json: bool) -> int:
    """Say what is wrong with a configuration, or what it comes to."""
    from pipeline.config.check import check as check_file

    report = check_file(config)
    if json:
        print_json(report)
        return 0 if report.ok else 2
    for line in (*report.errors, *(f"warning: {one}" for one in report.warnings)):
        print_line(line)
    if report.summary is not None:
        for line in report.summary.lines():
            print_line(line)
        print_line(f"{report.file}: good")
    return 0 if report.ok else 2


def scripted_judge(host: str, port: int) -> int:
    """Serve the scripted judge until it is told to stop."""
    from pipeline.judges.scripted import serve_forever

    try:
        return asyncio.run(serve_forever(port, host=host))
    except OSError as error:
        raise ConfigurationError(f"--port: cannot listen on {host}:{port}: {error.strerror}; write another port") from error


def bench(traces: int, *, json: bool) -> int:
    """Measure and print."""
    from pipeline.apps.bench import measure

    report = asyncio.run(measure(traces))
    if json:
        print_json(report)
    else:
        print_line(report.table())
    return 0


def print_line(text: str) -> None:
    """Print a line, without what would act on a terminal."""
    sys.stdout.write(f"{visible(text)}\n")


def print_json(value: Any) -> None:
    """Print JSON on a line: UTF-8, whatever the terminal's encoding is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(f"{as_json(value)}\n".encode())
    sys.stdout.buffer.flush()


def ask(settings: "TracegradeSettings", path: str, direct: "Callable[[Store, str], Awaitable[Any]]", body: Any = None) -> Any:
    """Return plain JSON values: from the ``up`` that has the folder open (a ``body`` is posted to it), else from the store itself."""
    from pipeline.apps import served

    if settings.store.url is None:
        url = served.address(settings.store.path)
        if url is not None:
            return served.ask(url, path, served.key_of(settings, os.environ), body, settings.receiver.tls)
        if not settings.store.path.exists():
            raise ConfigurationError(
                f"there is no data in {settings.store.path}; start tracegrade up, or name the folder as store.path in tracegrade.yaml"
            )
    return _open(settings, direct)


def _open(settings: "TracegradeSettings", direct: "Callable[[Store, str], Awaitable[Any]]") -> Any:
    from sinks.clickhouse.store import Store

    async def opened() -> Any:
        store = await asyncio.to_thread(Store.open, settings.store)
        try:
            return await direct(store, settings.project)
        finally:
            await store.close()

    return msgspec.json.decode(msgspec.json.encode(asyncio.run(opened())))
