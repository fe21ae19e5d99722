"""Play: the bundled traces through the embedded pipeline on a temporary folder, on a clock that follows event time."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from ruamel.yaml import YAML

from collectors.replay import Recording, Times, read, retime, send
from pipeline.apps import show
from pipeline.apps.compose import Product
from pipeline.apps.demo.receiver import Pager
from pipeline.config.store import StoreSettings
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError
from pipeline.judges.scripted import MODEL, ScriptedJudge
from pipeline.model.time import MINUTE, SECOND
from pipeline.model.window import Transition, Trip
from pipeline.runtime.clock import ManualClock, SystemClock
from sinks.clickhouse.store import Store
from sinks.golden import files as golden_files

APART: Final = 10 * SECOND
"""Event time between the ends of two recordings."""
BEGAN: Final = 40 * MINUTE
"""How long ago the demo's history began."""


async def play(traces: Path | None, keep: Path | None) -> int:
    """Grade, print, and say where to look next; 0 when every span was accepted."""
    with _folder(keep) as folder, _traces(traces) as source:
        recordings = [recording for recording in read([source]) if not recording.skipped]
        if not recordings:
            raise ConfigurationError(f"there are no recorded traces in {source}")
        async with AsyncExitStack() as stack:
            pager = await stack.enter_async_context(Pager())
            judge = await stack.enter_async_context(ScriptedJudge())
            settings = _settings(folder, judge.url, pager.url)
            store = await asyncio.to_thread(Store.open, settings.store)
            stack.push_async_callback(store.close)
            clock = ManualClock(SystemClock().now() - BEGAN)
            product = await stack.enter_async_context(Product(settings, store, clock))
            began = time.monotonic()
            refused = await _run(product, clock, recordings)
            await _report(product, pager, folder, time.monotonic() - began, kept=keep is not None)
    return 1 if refused else 0


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        if keep.exists() and any(keep.iterdir()):
            raise ConfigurationError(f"{keep} is not empty; name a folder that does not exist yet")
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    with TemporaryDirectory(prefix="tracegrade-demo-", ignore_cleanup_errors=True) as temporary:
        yield Path(temporary)


@contextmanager
def _traces(traces: Path | None) -> Iterator[Path]:
    if traces is not None:
        yield traces
        return
    with as_file(files("pipeline.apps.demo").joinpath("traces")) as bundled:
        yield bundled


def _settings(folder: Path, judge_url: str, pager_url: str) -> TracegradeSettings:
    here = files("pipeline.apps.demo")
    written: dict[str, Any] = YAML(typ="safe").load(here.joinpath("tracegrade.yaml").read_text())
    calibration = folder / "calibration.yaml"
    calibration.write_text(here.joinpath("calibration.yaml").read_text())
    return TracegradeSettings.model_validate(
        {
            **written,
            "store": StoreSettings(path=folder / "data"),
            "receiver": {"http_port": 0, "grpc_port": 0},
            "judge": {"base_url": judge_url, "model": MODEL, "calibration": calibration},
            "alerts": [{"name": "pager", "webhook": pager_url}],
        }
    )


async def _run(product: Product, clock: ManualClock, recordings: Sequence[Recording]) -> int:
    """Send each recording when its last span ends, then let the clocks run out. Returns how many spans were not accepted."""
    refused = 0
    with _progress() as progress:
        task = progress.add_task("sending recorded traces over OTLP", total=len(recordings))
        for recording in recordings:
            clock.advance_to(clock.now() + APART)
            requests = list(retime([recording], Times.SHIFTED, clock.now()))
            report = await asyncio.to_thread(send, requests, f"grpc://{product.served.grpc_address}")
            refused += report.rejected + report.failed
            progress.advance(task)
        later = (MINUTE + SECOND, 6 * MINUTE, 16 * MINUTE, MINUTE)
        task = progress.add_task("grading, judging, watching gates", total=len(later))
        for pause in later:
            await product.pipeline.settle()
            clock.advance_to(clock.now() + pause)
            progress.advance(task)
        await product.pipeline.settle()
    return refused


def _progress() -> Progress:
    return Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())


async def _report(product: Product, pager: Pager, folder: Path, seconds: float, *, kept: bool) -> None:
    project = product.settings.project
    runs = await product.store.scoreboard(project, 200)
    accounting = await product.store.accounting(project)
    show.print_to_terminal(show.scoreboard(_plain(runs), _plain(accounting)))
    trips = [trip for trip in await product.store.trips() if trip.transition is not Transition.RUN]
    cases = await product.store.golden_cases(project)
    console = Console()
    console.print(show.trips(_plain(trips)))
    console.print(f"{len(pager.told)} notifications reached the demo's webhook, each under its own idempotency key.")
    console.print(f"{len(cases)} failures became golden candidates.")
    console.print(f"The pipeline took {seconds:.1f} s. The judge is a script of fixed rules, calibrated for this demo only.")
    if kept:
        path = golden_files.file_of(folder, project)
        golden_files.write(path, cases)
    _say_what_next(console, runs[0].run_id if runs else "RUN", folder if kept else None, trips)


def _plain(what: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(what))


def _say_what_next(console: Console, run_id: str, folder: Path | None, trips: Sequence[Trip]) -> None:
    console.print("\n[bold]Where to look next[/]")
    steps: Mapping[str, str] = {
        "tracegrade demo --keep DIR": "the same, with the data kept: its tables, and the golden candidates as a file",
        "tracegrade up": "receive your own agents' spans on 4317 (gRPC) and 4318 (HTTP), status page on http://127.0.0.1:4318",
        "tracegrade replay FILE…": "send recorded traces to it",
        "tracegrade scoreboard": "what became of them",
        f"tracegrade run {run_id[:10]}": "everything that is known of one run",
        "tracegrade check": "what the configuration comes to; docs/configuration.md has every key",
    }
    if folder is not None:
        console.print(
            f"The data is in {folder}; write [bold]store: {{path: {folder}/data}}[/] and [bold]project: demo[/] into tracegrade.yaml to read it."
        )
    width = max(map(len, steps))
    for command, what in steps.items():
        console.print(f"  [bold]{command:{width}}[/]  {what}", highlight=False)
    if not trips:
        console.print("No gate tripped.")
