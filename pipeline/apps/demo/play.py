"""Play: the bundled traces through the embedded pipeline on a temporary folder, on a clock that follows event time."""

import asyncio
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text
from ruamel.yaml import YAML

from collectors.replay import Recording, Times, read, retime, send
from pipeline.apps import show
from pipeline.apps.compose import Product
from pipeline.apps.demo.receiver import Pager
from pipeline.apps.parts import WINDOW
from pipeline.config.store import StoreSettings
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError
from pipeline.judges.scripted import MODEL, ScriptedJudge
from pipeline.model.time import MINUTE, SECOND
from pipeline.model.window import Transition
from pipeline.runtime.clock import ManualClock, SystemClock
from sinks.clickhouse.store import Store
from sinks.golden import files as golden_files

APART: Final = 10 * SECOND
"""Event time between the ends of two recordings."""
BEGAN: Final = 40 * MINUTE
"""How long ago the demo's history began."""
PATIENCE_S: Final = 5.0
"""For one request to a receiver in the same process; an interrupted demo waits no longer."""
CONFIGURATION: Final = "tracegrade.yaml"


async def play(traces: Path | None, keep: Path | None) -> int:
    """Grade, print, and say where to look next; 0 when every span was accepted."""
    console = show.console()
    with _folder(keep) as folder, _traces(traces) as source:
        recordings = [recording for recording in read([source]) if not recording.skipped]
        if not recordings:
            raise ConfigurationError(f"there are no recorded traces in {source}")
        async with AsyncExitStack() as stack:
            pager = await stack.enter_async_context(Pager())
            judge = await stack.enter_async_context(ScriptedJudge())
            settings = _settings(folder, judge.url, pager.url)
            store = Store.open(
                settings.store
            )  # not on another thread, which an interrupt would leave at work in a folder that goes away
            stack.push_async_callback(store.close)
            clock = ManualClock(_beginning(SystemClock().now()))
            product = await stack.enter_async_context(Product(settings, store, clock))
            began = time.monotonic()
            refused = await _run(product, clock, recordings, console)
            seconds = time.monotonic() - began
            await _report(product, pager, console)
            run_id = await _keep(product, folder) if keep is not None else ""
    console.print(f"The pipeline took {seconds:.1f} s. The judge is a script of fixed rules, calibrated for this demo only.")
    if refused:
        console.print(f"{show.counted(refused, 'span')} of the recordings were not accepted.")
    _say_what_next(console, keep, run_id)
    return 1 if refused else 0


def _beginning(now: int) -> int:
    """At the start of a window, so that the same recordings share windows in every demo."""
    return (now - BEGAN) // WINDOW * WINDOW


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with TemporaryDirectory(prefix="tracegrade-demo-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"--keep: {keep} cannot be made: {error.strerror}; name another folder") from error
    yield keep


@contextmanager
def _traces(traces: Path | None) -> Iterator[Path]:
    if traces is not None:
        yield traces
        return
    with as_file(files("pipeline.apps.demo").joinpath("traces")) as bundled:
        yield bundled


def _settings(folder: Path, judge_url: str, pager_url: str) -> TracegradeSettings:
    here = files("pipeline.apps.demo")
    written: dict[str, Any] = YAML(typ="safe").load(here.joinpath(CONFIGURATION).read_text(encoding="utf-8"))
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


async def _run(product: Product, clock: ManualClock, recordings: Sequence[Recording], console: Console) -> int:
    """Send each recording when its last span ends, then let the clocks run out. Returns how many spans were not accepted.

    Ids stay those of the recordings, so that two demos can be compared line by line.
    """
    refused = 0
    with _progress(console) as progress:
        task = progress.add_task("sending recorded traces over OTLP", total=len(recordings))
        for recording in recordings:
            clock.advance_to(clock.now() + APART)
            requests = list(retime([recording], Times.SHIFTED, clock.now(), same_ids=True))
            report = await asyncio.to_thread(send, requests, f"grpc://{product.served.grpc_address}", timeout_s=PATIENCE_S)
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


def _progress(console: Console) -> Progress:
    return Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console)


async def _report(product: Product, pager: Pager, console: Console) -> None:
    project = product.settings.project
    runs = await product.store.scoreboard(project, 200)
    accounting = await product.store.accounting(project)
    trips = [trip for trip in await product.store.trips() if trip.transition is not Transition.RUN]
    cases = await product.store.golden_cases(project)
    console.print(show.scoreboard(_plain(runs), _plain(accounting), console.width))
    console.print()
    console.print(show.trips(_plain(trips)) if trips else "No gate tripped.")
    console.print()
    console.print(
        f"{show.counted(len(pager.told), 'notification')} reached the demo's webhook, each under its own idempotency key."
    )
    console.print(f"{show.counted(len(cases), 'failure')} became golden candidates.")


def _plain(what: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(what))


async def _keep(product: Product, folder: Path) -> str:
    """Leave what reads the data, and the golden candidates. Returns the id of a run that is worth a look."""
    written = files("pipeline.apps.demo").joinpath(CONFIGURATION).read_text(encoding="utf-8")
    (folder / CONFIGURATION).write_text(f"{written}\nstore: {{path: data}}\n", encoding="utf-8")
    project = product.settings.project
    golden_files.write(golden_files.file_of(folder, project), await product.store.golden_cases(project))
    runs = await product.store.scoreboard(project, 200)
    return next((run.run_id for run in runs if run.verdict == "fail"), runs[0].run_id if runs else "")


def _say_what_next(console: Console, folder: Path | None, run_id: str) -> None:
    program = _program()
    if folder is None:
        steps = {
            f"{program} demo --keep DIR": "the same, with the data kept: every run, its tables, the golden candidates as a file"
        }
    else:
        read = f"-c {folder / CONFIGURATION}"
        steps = {
            f"{program} run {run_id[: show.DIGITS]} {read}": "everything that is known of one run that failed",
            f"{program} scoreboard {read}": "the runs again",
            str(golden_files.file_of(folder, "demo")): "the golden candidates",
        }
    steps |= {
        f"{program} up": "receive your own agents' spans; the status page is http://127.0.0.1:4318",
        f"{program} check": "what the configuration comes to",
        "README.md": "how to point an agent at it, and where to read on",
    }
    console.print(Text("\nWhere to look next", style="bold"))
    for command, what in steps.items():  # each on a line of its own, to be copied whole
        console.print(Text(f"  {command}", style="cyan"), soft_wrap=True)
        console.print(f"      {what}")


def _program() -> str:
    """How this program was called, so that the next call can be copied."""
    called = Path(sys.argv[0])
    found = shutil.which("tracegrade")
    on_the_path = found is not None and Path(found).absolute() == called.absolute()
    return str(called) if called.name == "tracegrade" and not on_the_path else "tracegrade"
