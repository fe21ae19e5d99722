"""``make demo`` as a newcomer meets it: run once, read, edited, run again."""

import json
import re
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from jsonschema import Draft202012Validator
from serving import Said, tracegrade

from collectors.otlp.keys import Keys
from pipeline.apps.demo.play import _settings
from pipeline.apps.verdict_routes import verdict_routes
from pipeline.config.grading import graders_of
from pipeline.config.store import StoreSettings
from pipeline.model.comparison import Answer
from pipeline.model.result import Authority
from pipeline.model.verdict import StructuredVerdict
from pipeline.runtime.verdicts import Verdicts
from sinks.clickhouse.connection import connect
from sinks.clickhouse.store import Store

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "pipeline" / "apps" / "demo" / "traces"
SCHEMA = msgspec.json.decode((ROOT / "docs" / "verdict.schema.json").read_bytes())
PROJECT = "demo"
Client = TestClient[web.Request, web.Application]


class Demo(NamedTuple):
    """A demo that was kept."""

    said: Said
    folder: Path
    runs: dict[str, dict[str, Any]]

    @property
    def rows(self) -> dict[str, tuple[Any, ...]]:
        """What the scoreboard shows of each run, by its id."""
        shown = ("steps", "tools", "failed_calls", "verdict", "reason", "converted")
        return {run_id: (run["cohort"]["agent"], *(run[name] for name in shown)) for run_id, run in self.runs.items()}


def a_demo(folder: Path, traces: Path | None = None) -> Demo:
    chosen = ("--traces", traces) if traces is not None else ()
    said = tracegrade("demo", "--keep", folder, *chosen, environment={"COLUMNS": "100"})
    assert said.code == 0, said.err
    board = tracegrade("scoreboard", "--json", "--limit", "1000", "-c", folder / "tracegrade.yaml").json
    return Demo(said, folder, {run["run_id"]: run for run in board["runs"]})


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return a_demo(tmp_path_factory.mktemp("demo") / "kept")


def test_it_shows_what_it_is_for(demo: Demo) -> None:
    assert len(demo.runs) >= 25
    assert f"sends {len(demo.runs)} recorded runs" in (ROOT / "README.md").read_text()
    verdicts = Counter(run["verdict"] for run in demo.runs.values())
    assert verdicts.keys() == {"pass", "fail", "insufficient_evidence"}
    assert any(run["reason"].startswith("refund_after_lookup: ") for run in demo.runs.values()), "no policy tripped"
    assert any(run["reason"].startswith("correctness: ") for run in demo.runs.values()), "no judgment failed a run"
    assert all(run["reason"] for run in demo.runs.values())
    counted = json.loads(tracegrade("scoreboard", "--json", "-c", demo.folder / "tracegrade.yaml").out)["accounting"]
    assert counted["received"] == len(demo.runs) == counted["judged"] + sum(counted["unresolved"].values())
    assert not counted["pending"]
    assert not counted["open_traces"]


def test_converted_transcripts_are_marked_and_only_they(demo: Demo) -> None:
    converted = {run["cohort"]["agent"] for run in demo.runs.values() if run["converted"]}
    assert {agent.partition("-")[0] for agent in converted} == {"tau", "agentdojo"}
    assert not any(
        run["cohort"]["agent"].startswith(("tau-", "agentdojo-")) for run in demo.runs.values() if not run["converted"]
    )
    assert demo.said.out.count("(converted)") == sum(run["converted"] for run in demo.runs.values())


def test_it_is_readable_at_a_hundred_columns_and_says_where_to_look_next(demo: Demo) -> None:
    shown = demo.said.out.splitlines()
    head = next(line for line in shown if "verdict" in line)
    assert head.split() == ["run", "agent", "steps", "cost", "tools", "verdict", "first", "reason"]
    table = shown[shown.index(head) : shown.index(next(line for line in shown if "runs received" in line))]
    assert {line[:8] for line in table if re.match(r"[0-9a-f]{8} ", line)} == {run_id[:8] for run_id in demo.runs}
    assert max(len(line) for line in table) <= 100
    told = re.search(r"^(\d+) notifications? reached the demo's webhook", demo.said.out, re.MULTILINE)
    promoted = re.search(r"^(\d+) failures? became golden candidates", demo.said.out, re.MULTILINE)
    assert told is not None
    assert int(told[1]) > 0
    assert promoted is not None
    assert int(promoted[1]) > 0
    assert len((demo.folder / "golden-demo.jsonl").read_text().splitlines()) == int(promoted[1])
    assert "verdict-floor" in demo.said.out
    assert "gating-checks" in demo.said.out
    assert "Where to look next" in shown


def test_the_commands_that_it_ends_with_work(demo: Demo) -> None:
    _, _, ending = demo.said.out.partition("Where to look next\n")
    commands = [line.split()[1:] for line in ending.splitlines() if line.startswith("  tracegrade ")]
    assert [words[0] for words in commands] == ["run", "scoreboard", "up", "check"]
    for words in commands:
        if words[0] in ("run", "scoreboard"):
            said = tracegrade(*words)
            assert (said.code, said.err) == (0, ""), words
    failed = tracegrade(*commands[0], "--json").json
    assert failed["line"]["verdict"] == "fail"
    assert {one["kind"] for one in failed["results"]} == {"code", "judged", "composite", "verdict"}


LOOKED_UP = r"""{\"order_id\": \"A-1001\", \"item\": \"lamp\", \"amount\": """
# One result each: what the span of lookup_order says it returned. What the model was told, and its answer, stay.
ONE_RESULT = {
    "smolagents/refund_ok.jsonl": "output.value",
    "openai-agents/refund_ok.jsonl": "output.value",
    "openai-v2/refund_ok_rootspan.jsonl": "gen_ai.tool.call.result",
}


def test_editing_one_tool_result_changes_that_run_and_no_other(demo: Demo, tmp_path: Path) -> None:
    """One in each of three forms in which instrumentations write it: three runs change, and nothing else of all that is sent with them."""
    edited = set()
    for name, attribute in ONE_RESULT.items():
        file = tmp_path / "traces" / name
        shutil.copytree((TRACES / name).parent, file.parent)
        kept = f'"{attribute}", "value": {{"stringValue": "{LOOKED_UP}'
        before = file.read_text()
        assert before.count(f"{kept}42.5") == 1
        file.write_text(before.replace(f"{kept}42.5", f"{kept}17.25"))
        (trace_id,) = set(re.findall(r'"traceId": ?"(\w+)"', before))
        edited.add(trace_id)
    again = a_demo(tmp_path / "again", tmp_path / "traces")
    changed = [run_id for run_id, row in again.rows.items() if row != demo.rows[run_id]]
    assert len(again.rows) > len(ONE_RESULT)
    assert {again.runs[run_id]["trace_id"] for run_id in changed} == edited
    for run_id in changed:
        assert (demo.runs[run_id]["verdict"], again.runs[run_id]["verdict"]) == ("pass", "fail")
        assert again.runs[run_id]["reason"].startswith("correctness: ")


def test_the_queries_to_start_from_find_something(demo: Demo) -> None:
    text = (ROOT / "docs" / "tables.md").read_text()
    queries = re.findall(r"```sql\n(.+?)```", text, re.DOTALL)
    assert len(queries) >= 3
    database = connect(StoreSettings(path=demo.folder / "data"), {})
    try:
        for query in queries:
            found = database.query(query.replace("'default'", "'demo'"))
            assert bool(found) == ("conversation_id" not in query), query  # no run of the demo is part of a conversation
    finally:
        database.close()


def test_the_calibration_is_that_of_the_shipped_rubric(tmp_path: Path) -> None:
    settings = _settings(tmp_path, "http://127.0.0.1:1/v1", "http://127.0.0.1:1/alerts")
    (graders,) = graders_of(settings).values()
    assert {one.name: one.authority for one in graders.grading.judged} == dict.fromkeys(
        ("correctness", "completeness", "policy_and_safety", "format", "tone"), Authority.ALONE
    ), (
        "the rubric, the prompt or the scripted model changed: write the contracts of `tracegrade check` into demo/calibration.yaml"
    )


# --- verdicts and comparisons


def _one(demo: Demo, verdict: str) -> dict[str, Any]:
    return next(run for run in demo.runs.values() if run["verdict"] == verdict)


def _worst_and_best(demo: Demo) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two runs of which one is better whatever is unknown of either."""
    scored = [run for run in demo.runs.values() if run["composite_low"] is not None]
    worst, best = min(scored, key=lambda run: run["composite_high"]), max(scored, key=lambda run: run["composite_low"])
    assert worst["composite_high"] < best["composite_low"]
    return worst, best


def _command(demo: Demo, *arguments: str) -> Said:
    said = tracegrade(*arguments, "-c", demo.folder / "tracegrade.yaml", environment={"COLUMNS": "200"})
    assert said.code == 0, said.err
    return said


@pytest.fixture
async def store(demo: Demo) -> AsyncIterator[Store]:
    opened = Store.open(StoreSettings(path=demo.folder / "data"))
    yield opened
    await opened.close()


@pytest.fixture
async def client(store: Store) -> AsyncIterator[Client]:
    application = web.Application()
    application.add_routes(verdict_routes(store, Keys({}, PROJECT)))
    async with TestClient(TestServer(application)) as made:
        yield made


def test_a_run_has_a_verdict_that_a_program_and_a_person_can_read(demo: Demo) -> None:
    run = _one(demo, "fail")
    told = _command(demo, "verdict", run["run_id"][:12], "--json").json
    Draft202012Validator(SCHEMA).validate(told)
    assert (told["evaluated"]["run_id"], told["verdict"]["outcome"], told["verdict"]["reason"]) == (
        run["run_id"],
        "fail",
        run["reason"],
    )
    assert told["required_actions"]
    shown = _command(demo, "verdict", run["run_id"]).out
    assert run["run_id"] in shown
    assert "Required actions" in shown
    assert "1. " in shown
    assert re.search(r"^coverage +\d+% decided; passed \d+% to \d+%", shown, re.MULTILINE)


def test_two_runs_are_compared(demo: Demo) -> None:
    worst, best = _worst_and_best(demo)
    assert "The second is worse: -" in _command(demo, "compare", best["run_id"], worst["run_id"]).out


async def test_a_comparison_is_the_difference_of_what_is_stored(demo: Demo, store: Store) -> None:
    worst, best = _worst_and_best(demo)
    told = (await Verdicts(store).compared(PROJECT, worst["run_id"], best["run_id"])).composite
    assert told.answer is Answer.BETTER
    assert told.low == pytest.approx(best["composite_low"] - worst["composite_high"])
    assert told.high == pytest.approx(best["composite_high"] - worst["composite_low"])


def test_a_verdict_on_a_run_that_there_is_not_is_a_sentence(demo: Demo) -> None:
    said = tracegrade("verdict", "zz", "-c", demo.folder / "tracegrade.yaml")
    assert (said.code, "has no run 'zz'" in said.err) == (2, True)


async def test_every_verdict_is_valid_and_says_what_is_stored_of_the_run(demo: Demo, store: Store) -> None:
    verdicts = Verdicts(store)
    for run in demo.runs.values():
        found = await verdicts.one(PROJECT, run["run_id"])
        Draft202012Validator(SCHEMA).validate(msgspec.json.decode(msgspec.json.encode(found)))
        ruling = found.verdict
        assert (ruling.outcome, ruling.reason) == (run["verdict"], run["reason"])
        assert (ruling.composite_low, ruling.composite_high) == (run["composite_low"], run["composite_high"])
        assert found.evaluator.rubric == "support"
        assert bool(found.required_actions) == (run["verdict"] != "pass" and run["reason"] != "unsampled"), run["reason"]
        judged = [one for one in found.dimensions if one.score is not None]
        assert all(one.quote or one.rationale.startswith("near_empty") for one in judged), "every score has its quote"
        assert all(one.model == "scripted-judge-1" for one in judged if not one.rationale.startswith("near_empty"))
    assert {run["verdict"] for run in demo.runs.values()} == {"pass", "fail", "insufficient_evidence"}


async def test_an_unknown_gate_is_flagged_for_a_person_on_the_run_itself(demo: Demo, store: Store) -> None:
    waiting = [run["run_id"] for run in demo.runs.values() if (await Verdicts(store).one(PROJECT, run["run_id"])).for_a_person]
    flagged = [
        run["run_id"] for run in demo.runs.values() if "needs_a_person" in (await store.run_detail(PROJECT, run["run_id"])).flags
    ]
    assert waiting == flagged
    assert waiting, "the demo has none"


async def test_over_http_it_is_the_same(demo: Demo, client: Client) -> None:
    run, other = _one(demo, "pass"), _one(demo, "fail")
    answer = await client.get(f"/api/runs/{run['run_id'][:12]}/verdict")
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert msgspec.json.decode(await answer.read(), type=StructuredVerdict).evaluated.run_id == run["run_id"]
    answer = await client.get("/api/compare", params={"a": run["run_id"], "b": other["run_id"]})
    assert (answer.status, (await answer.json())["first"]["run_id"]) == (200, run["run_id"])


async def test_what_cannot_be_answered_is_a_sentence(client: Client) -> None:
    refusals = {
        "/api/runs/zz/verdict": (404, "has no run 'zz'"),
        "/api/compare": (400, "a names no run; write as much of the beginning of its id as is unique"),
        "/api/compare?a=0": (400, "b names no run; write as much of the beginning of its id as is unique"),
        "/api/compare?a=zz&b=zz": (404, "has no run 'zz'"),
        "/api/compare?a=0&b=0&across_contracts=1": (400, "across_contracts is '1'; write true or false"),
    }
    for path, (status, sentence) in refusals.items():
        answer = await client.get(path)
        assert answer.status == status, path
        assert sentence in (await answer.json())["error"]


async def test_another_projects_runs_are_not_shown(demo: Demo, store: Store) -> None:
    application = web.Application()
    application.add_routes(verdict_routes(store, Keys({}, "another")))
    async with TestClient(TestServer(application)) as client:
        assert (await client.get(f"/api/runs/{next(iter(demo.runs.values()))['run_id']}/verdict")).status == 404
