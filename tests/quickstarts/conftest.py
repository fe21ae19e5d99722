"""The quick-starts of the session: environments built, scenarios played on one ``tracegrade up``, and what came out, for tests to compare."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from machine import UnavailableError
from quickstarts.environments import environment
from quickstarts.pages import page
from quickstarts.playing import Place, Played, play
from quickstarts.scenarios import SCENARIOS
from quickstarts.scripted_model import Served, a_scripted_model
from serving import Up, an_up, eventually, get, tracegrade

CONFIG = """
store: {{path: {data}}}
receiver: {{http_port: 0, grpc_port: 0}}
assemble: {{quiet_period: 500ms}}
agents: {{default: {{rubric: null}}}}
"""
Tell = Callable[[str], None]


class Outcome(NamedTuple):
    """What happened in a scenario, and what the product makes of it."""

    played: Played
    served: Sequence[Served]
    runs: Sequence[Mapping[str, Any]]
    printed: str
    """What ``tracegrade run`` says of the first run."""


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    """The page and the scenario that are compared."""
    return str(request.param)


@pytest.fixture
def outcome(key: str, outcomes: Mapping[str, Outcome], environments: Mapping[str, Path | UnavailableError]) -> Outcome:
    """What came out of them; nothing does where an environment cannot be built, which is a failure where everything has to be there."""
    found = environments[key.partition(".")[0]]
    if isinstance(found, UnavailableError):
        if os.environ.get("CI") == "true":
            pytest.fail(str(found))
        pytest.skip(str(found))
    return outcomes[key]


@pytest.fixture(scope="session")
def keys(request: pytest.FixtureRequest) -> list[str]:
    """All that is compared in this session."""
    found = (
        item.callspec.params.get("key")
        for item in request.session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    )
    return sorted({str(one) for one in found if one in SCENARIOS})


@pytest.fixture(scope="session")
def tell(request: pytest.FixtureRequest) -> Tell:
    """Say how far it is, to who waits for minutes."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def say(text: str) -> None:
        with capture.global_and_fixture_disabled():
            sys.stderr.write(f"\n{text}")
            sys.stderr.flush()

    return say


@pytest.fixture(scope="session")
def environments(keys: Iterable[str], tell: Tell) -> dict[str, Path | UnavailableError]:
    """The pages' environments, built as far as they are not there."""
    names = dict.fromkeys(key.partition(".")[0] for key in keys)
    built: dict[str, Path | UnavailableError] = {}
    began = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        building = {pool.submit(environment, name): name for name in names}
        for done in as_completed(building):
            error = done.exception()
            if error is not None and not isinstance(error, UnavailableError):
                raise error
            built[building[done]] = error or done.result()
            tell(f"environment {len(built)} of {len(names)}: {building[done]}, after {time.monotonic() - began:.0f} s")
    return built


@pytest.fixture(scope="session")
def outcomes(
    keys: Sequence[str], environments: Mapping[str, Path | UnavailableError], tmp_path_factory: pytest.TempPathFactory, tell: Tell
) -> dict[str, Outcome]:
    """Everything played, as many programs at a time as there are processors."""
    folder = tmp_path_factory.mktemp("quickstarts")
    config = folder / "tracegrade.yaml"
    config.write_text(CONFIG.format(data=folder / "data"))
    began = time.monotonic()
    with (
        a_scripted_model({key: SCENARIOS[key].turns for key in keys}) as model,
        an_up(config, folder / "data") as up,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        playing = {}
        for key in keys:
            name, _, _ = key.partition(".")
            where = environments[name]
            if isinstance(where, Path):
                place = Place(where, folder / key, up.http, model.url)
                playing[pool.submit(play, page(name), SCENARIOS[key], key, place)] = key
        played = {}
        try:
            for done in as_completed(playing):
                played[playing[done]] = done.result()
                if len(played) % 10 == 0:
                    tell(f"scenario {len(played)} of {len(playing)}, after {time.monotonic() - began:.0f} s")
        finally:
            pool.shutdown(cancel_futures=True)
        runs = _runs(up, config)
        return {key: Outcome(one, model.served[key], *runs.get(key, ((), ""))) for key, one in played.items()}


def _runs(up: Up, config: Path) -> dict[str, tuple[list[Mapping[str, Any]], str]]:
    """Wait until all that was sent is a run or none, and return the runs of each environment."""

    def is_settled() -> bool:
        accounting = get(f"{up.http}/api/accounting").json
        return not accounting["open_traces"] and not accounting["pending"]

    eventually(is_settled)
    found: dict[str, tuple[list[Mapping[str, Any]], str]] = {}
    for line in get(f"{up.http}/api/scoreboard?limit=10000").json["runs"]:
        key = line["cohort"]["environment"]
        runs, printed = found.get(key, ([], ""))
        if key.endswith(".success"):
            printed = tracegrade("run", line["run_id"], "-c", config).out
        found[key] = ([*runs, get(f"{up.http}/api/runs/{line['run_id']}").json], printed)
    return found
