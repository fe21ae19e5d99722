"""``tracegrade up`` as its user meets it: a process, real exporters, the commands, signals, and the same folder again."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from serving import Said, Up, an_agent_runs, an_up, get, grpc_exporter, http_exporter, scored, tracegrade

from pipeline.apps import served

CONFIG = """
store: {{path: {data}}}
receiver: {{http_port: {http}, grpc_port: {grpc}}}
assemble: {{quiet_period: 300ms}}
agents:
  default:
    rubric: null
    checks:
      policies: [{{name: no_deletion, forbid: {{tool: delete_customer}}}}]
"""


def configured(folder: Path, http: int = 0, grpc: int = 0, data: str = "data") -> Path:
    config = folder / f"{data}-{http}-{grpc}.yaml"
    config.write_text(CONFIG.format(data=folder / data, http=http, grpc=grpc))
    return config


def reports(config: Path, run: str, folder: Path) -> dict[str, Any]:
    """Everything that the commands say, with the golden cases as they are exported."""
    exported = tracegrade("golden", "export", folder, "-c", config, "--json")
    assert exported.code == 0, exported.err
    return {
        "board": json_of(tracegrade("scoreboard", "--json", "-c", config)),
        "run": json_of(tracegrade("run", run, "--json", "-c", config)),
        "golden": Path(exported.json["file"]).read_text(),
        "cases": exported.json["cases"],
    }


def json_of(said: Said) -> Any:
    assert said.code == 0, said.err
    return said.json


@contextmanager
def a_metrics_collector() -> Iterator[tuple[str, list[ExportMetricsServiceRequest]]]:
    """An OTLP endpoint for metrics, and what arrived at it."""
    arrived: list[ExportMetricsServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            arrived.append(ExportMetricsServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/metrics", arrived
        finally:
            server.shutdown()
            thread.join()


def test_a_run_is_scored_and_stays_what_it_is_through_every_end_of_the_process(tmp_path: Path) -> None:
    config, data = configured(tmp_path), tmp_path / "data"
    with (
        a_metrics_collector() as (endpoint, arrived),
        an_up(config, data, {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": endpoint}) as up,
    ):
        an_agent_runs(grpc_exporter(up), "over-grpc")
        an_agent_runs(http_exporter(up), "over-http", tools=("lookup_order", "delete_customer"))
        # Once is enough: a head is the last span that is exported, and nothing of these traces closes before it.
        board = scored(up, 2)
        rows = {row["cohort"]["agent"]: row for row in board["runs"]}
        assert {agent: (row["verdict"], row["steps"], row["tools"]) for agent, row in rows.items()} == {
            "over-grpc": ("pass", 3, ["lookup_order"]),
            "over-http": ("fail", 4, ["lookup_order", "delete_customer"]),
        }
        run = rows["over-http"]["run_id"]
        through_up = reports(config, run[:8], tmp_path / "golden-up")
        assert through_up["board"] == board
        assert through_up["run"]["line"]["run_id"] == run
        assert through_up["cases"] == 1
        assert get(f"{up.http}/api/accounting").json == board["accounting"]

        second = tracegrade("up", "-c", config)
        assert second.code == 2
        assert f"is open in process {up.process.pid}" in second.err

        assert up.ends(signal.SIGTERM) < 15
        assert up.process.returncode == 0
        assert not (data / served.FILE).exists()
    names = {
        metric.name
        for request in arrived
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert {"tracegrade.spans.received", "tracegrade.runs.graded", "tracegrade.traces.open"} <= names
    assert reports(config, run[:8], tmp_path / "golden-folder") == through_up

    with an_up(config, data) as up:
        assert scored(up, 2) == through_up["board"]
        up.ends(signal.SIGKILL)
    assert (data / served.FILE).exists(), "a killed process cannot clean up after itself"
    assert served.address(data) is None
    assert tracegrade("scoreboard", "--json", "-c", config).json == through_up["board"]


def test_an_address_that_a_killed_process_left_is_not_that_of_whoever_has_its_port_now(tmp_path: Path) -> None:
    killed = configured(tmp_path, data="killed")
    with an_up(killed, tmp_path / "killed") as up:
        up.ends(signal.SIGKILL)
        port = int(up.http.rpartition(":")[2])
    other = configured(tmp_path, http=port, data="other")
    with an_up(other, tmp_path / "other") as up:
        an_agent_runs(http_exporter(up), "other")
        scored(up, 1)
        assert tracegrade("scoreboard", "--json", "-c", killed).json["runs"] == []
        for config, key in (
            (configured(tmp_path, http=port, data="third"), "http_port"),
            (configured(tmp_path, grpc=port, data="third"), "grpc_port"),
        ):
            refused = tracegrade("up", "-c", config)
            assert refused.code == 2
            assert f"receiver.{key}: cannot listen on 127.0.0.1:{port}" in refused.err
            assert "Traceback" not in refused.err
            assert len(refused.err.splitlines()) == 1
        assert up.ends(signal.SIGINT) < 15
        assert up.process.returncode == 0


ACME, OTHER = "key-of-acme", "key-of-other"
HOSTILE = "[red]<script>alert(1)</script>[/] \x1b[2J\x1b]0;owned\x07 \u202egrade [/nope]"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """An ``up`` with two projects, in one of which a hostile agent ran."""
    folder = tmp_path_factory.mktemp("guarded")
    config = configured(folder)
    config.write_text(
        f"{config.read_text()}\nproject: acme\n".replace(
            "receiver: {", f'receiver: {{keys: {{acme: ["env:ACME_KEY"], other: [{OTHER}]}}, '
        )
    )
    with an_up(config, folder / "data", {"ACME_KEY": ACME}) as up:
        an_agent_runs(grpc_exporter(up, ACME), HOSTILE, order=HOSTILE, tools=(HOSTILE, "delete_customer"))
        an_agent_runs(http_exporter(up, OTHER), "the-others-agent")
        scored(up, 1, ACME)
        scored(up, 1, OTHER)
        yield up


PATHS = (
    "/",
    "/runs",
    "/runs/00",
    "/runs/00/value",
    "/api/scoreboard",
    "/api/accounting",
    "/api/golden",
    "/api/telemetry",
    "/api/runs/00",
)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("authorization", ["", "Bearer wrong", "Basic eDp3cm9uZw==", "Basic !", "Basic //8=", f"Digest {ACME}"])
def test_nothing_is_shown_without_the_key(guarded: Up, path: str, authorization: str) -> None:
    answer = get(f"{guarded.http}{path}", authorization)
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")
    assert "API key" in answer.json["error"]


def test_a_browser_may_send_the_key_as_a_password(guarded: Up) -> None:
    assert "project acme" in get(f"{guarded.http}/", "Basic YW55Ym9keTprZXktb2YtYWNtZQ==").text


@pytest.mark.parametrize(
    ("key", "project", "mine", "theirs"),
    [(ACME, "acme", "alert(1)", "the-others-agent"), (OTHER, "other", "the-others-agent", "alert(1)")],
)
def test_the_key_decides_whose_runs_are_seen(guarded: Up, key: str, project: str, mine: str, theirs: str) -> None:
    pages = [
        get(f"{guarded.http}{path}", f"Bearer {key}").text
        for path in ("/?all", "/api/scoreboard", "/api/scoreboard?agent=the-others-agent", "/api/golden")
    ]
    assert mine in pages[0]
    assert mine in pages[1]
    assert f"project {project}" in pages[0]
    assert not any(theirs in page for page in pages)
    other_run = get(f"{guarded.http}/api/scoreboard", f"Bearer {OTHER if key == ACME else ACME}").json["runs"][0]["run_id"]
    unknown = get(f"{guarded.http}/api/runs/{other_run}", f"Bearer {key}")
    assert unknown.status == 404
    assert unknown.json["error"] == f"project {project!r} has no run {other_run!r}; the scoreboard lists those it has"
    for path in (f"/runs/{other_run}", f"/runs/{other_run}/value?of=request", f"/runs?run={other_run}"):
        assert theirs not in get(f"{guarded.http}{path}", f"Bearer {key}").text
    assert get(f"{guarded.http}/runs/{other_run}", f"Bearer {key}").status == 404


def test_the_command_line_takes_the_key_from_the_configuration(guarded: Up) -> None:
    asked = ("scoreboard", "--json", "-c", guarded.config)
    assert tracegrade(*asked, environment={"ACME_KEY": ACME}).json["accounting"]["received"] == 1
    without = tracegrade(*asked)
    assert (without.code, without.out) == (2, "")
    assert "project 'acme' has no key in receiver.keys that can be read here" in without.err
    wrong = tracegrade(*asked, environment={"ACME_KEY": "wrong"})
    assert (wrong.code, wrong.err) == (2, "tracegrade: this API key is not known here\n")


def test_hostile_text_is_only_text_on_the_status_page(guarded: Up) -> None:
    page = get(f"{guarded.http}/?all", f"Bearer {ACME}")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert "<script" not in page.text
    assert "&lt;script&gt;" in page.text
    assert not {"\x1b", "\x07", "\u202e"} & set(page.text)
    assert "\\u202egrade" in page.text


def test_hostile_text_is_only_text_in_a_terminal(guarded: Up) -> None:
    known = {"ACME_KEY": ACME, "COLUMNS": "300"}
    board = tracegrade("scoreboard", "-c", guarded.config, environment=known)
    run = get(f"{guarded.http}/api/scoreboard", f"Bearer {ACME}").json["runs"][0]["run_id"]
    told = tracegrade("run", run, "-c", guarded.config, environment=known)
    as_json = tracegrade("run", run, "--json", "-c", guarded.config, environment=known)
    for said in (board, told, as_json):
        assert (said.code, said.err) == (0, "")
        assert not {"\x1b", "\x07", "\u202e"} & set(said.out)
    assert "[red]<script>alert" in told.out
    assert "[/nope]" in told.out
    assert as_json.json["line"]["cohort"]["agent"] == HOSTILE


@pytest.mark.parametrize("limit", ["", "0", "-1", "ten", "10001", "1e3", "%D9%A3", "9" * 5000])
def test_a_bad_limit_is_refused_with_what_to_write(guarded: Up, limit: str) -> None:
    answer = get(f"{guarded.http}/api/scoreboard?limit={limit}", f"Bearer {ACME}")
    assert answer.status == 400
    assert answer.json["error"].endswith("write a whole number from 1 to 10000")


def test_an_unknown_and_an_ambiguous_run_are_a_sentence(guarded: Up) -> None:
    unknown = tracegrade("run", "zzz", "-c", guarded.config, environment={"ACME_KEY": ACME})
    assert (unknown.code, unknown.out) == (2, "")
    assert unknown.err == "tracegrade: project 'acme' has no run 'zzz'; the scoreboard lists those it has\n"


def test_what_is_not_there_is_not_found(guarded: Up) -> None:
    assert get(f"{guarded.http}/api/nothing", f"Bearer {ACME}").status == 404
    assert get(f"{guarded.http}/healthz").status == 200


def test_strangers_are_not_let_in_without_a_key(tmp_path: Path) -> None:
    config = tmp_path / "open.yaml"
    config.write_text("receiver: {host: 0.0.0.0, http_port: 0, grpc_port: 0}\n")
    refused = tracegrade("up", "-c", config, cwd=tmp_path)
    assert refused.code == 2
    assert "0.0.0.0 can be reached from other machines, and no key is configured" in refused.err
    assert not (tmp_path / "tracegrade-data").exists()
