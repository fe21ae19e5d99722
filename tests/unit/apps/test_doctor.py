"""The doctor: one line a part, what to do where it is not well, and nothing that a part says is taken for well when it is not."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from judge_builders import a_verdict
from ruamel.yaml import YAML
from serving import tracegrade

from pipeline.apps.doctor import Finding, examine
from pipeline.config.store import StoreSettings
from pipeline.judges.scripted import MODEL, Canned, ScriptedJudge, failing
from sinks.clickhouse.store import Store

NOBODY = "http://127.0.0.1:9/v1"


async def found(folder: Path, written: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> list[Finding]:
    config = folder / "tracegrade.yaml"
    with config.open("w") as file:
        YAML().dump({"store": {"path": str(folder / "data")}, **written}, file)
    return [one async for one in examine(config, environment or {})]


def of(part: str, findings: list[Finding]) -> list[Finding]:
    return [one for one in findings if one.part == part]


async def test_a_newcomers_machine_is_well_before_anything_was_started(tmp_path: Path) -> None:
    findings = await found(tmp_path, {})
    assert [(one.part, one.ok) for one in findings] == [
        ("configuration", True),
        ("store", True),
        ("broker", None),
        ("judge", None),
    ]
    assert "is not there yet; tracegrade up makes it" in findings[1].said
    assert "docs/judge.md" in findings[3].said


async def test_a_mistake_in_the_configuration_is_all_there_is_to_say(tmp_path: Path) -> None:
    findings = await found(tmp_path, {"judge": {"base_url": "nonsense", "model": "m"}})
    assert [(one.part, one.ok) for one in findings] == [("configuration", False)]
    assert "is not an address" in findings[0].said


async def test_a_store_that_is_there_answers(tmp_path: Path) -> None:
    store = await asyncio.to_thread(Store.open, StoreSettings(path=tmp_path / "data"))
    await store.close()
    (one,) = of("store", await found(tmp_path, {}))
    assert one.ok
    assert "answers: ClickHouse" in one.said


async def test_brokers_that_do_not_answer_are_told(tmp_path: Path) -> None:
    written = {"kafka": {"brokers": ["127.0.0.1:9"]}, "store": {"url": "http://127.0.0.1:9"}}
    findings = await found(tmp_path, written)
    assert [(one.part, one.ok) for one in findings if one.part in ("store", "broker")] == [("store", False), ("broker", False)]


async def test_a_judge_is_asked_one_question_and_what_it_takes_is_told(tmp_path: Path) -> None:
    async with ScriptedJudge(formats=frozenset({"json_object_schema"}), refuses=frozenset({"seed"})) as server:
        judge = {"base_url": server.url, "model": MODEL, "price": {"input_per_million": 1, "output_per_million": 2}}
        said = of("judge", await found(tmp_path, {"judge": judge}))
    assert all(one.ok for one in said)
    answers, takes, reads, costs = (one.said for one in said)
    assert answers == f"{MODEL} at {server.url} answers, as {MODEL}"
    assert takes == "it takes a JSON object with a schema, max_tokens, no seeds, a temperature; it counts tokens"
    assert reads == "its verdict on a refund that went well can be read: 5, pass"
    assert costs.startswith("the question took ")
    assert costs.endswith(" dollars")


@pytest.mark.parametrize(
    ("canned", "todo"),
    [
        (failing(401), "put a key that may use scripted-judge-1 into OPENAI_API_KEY"),
        (failing(404), "correct judge.model or judge.base_url"),
        (failing(402), "out of money"),
        (failing(503), "busy or broken"),
        (Canned(text="Rather good."), "judgments like this end without a score; try a larger model"),
        (Canned(text='{"score": 5, "rea', finish_reason="length"), "raise judge.max_output_tokens"),
        (Canned(text=a_verdict(5, "Good.", "nowhere")), "quote_not_found"),
        (Canned(text=a_verdict("Unknown", "I do not know.", "")), "unknown: I do not know."),
    ],
)
async def test_a_judge_that_is_not_well_is_told_with_what_to_do(tmp_path: Path, canned: Canned, todo: str) -> None:
    async with ScriptedJudge(lambda _: canned) as server:
        said = of("judge", await found(tmp_path, {"judge": {"base_url": server.url, "model": MODEL}}))
    (one,) = [one for one in said if one.ok is False]
    assert todo in one.said


async def test_a_judge_that_nobody_can_reach(tmp_path: Path) -> None:
    (one,) = of("judge", await found(tmp_path, {"judge": {"base_url": NOBODY, "model": "m"}}))
    assert one.ok is False
    assert "cannot be reached" in one.said


async def test_every_model_that_may_judge_is_asked(tmp_path: Path) -> None:
    async with ScriptedJudge() as first, ScriptedJudge(lambda _: failing(404)) as second:
        models = {"claude-haiku-4-5": {"base_url": second.url}, "house-model": {}}
        said = of("judge", await found(tmp_path, {"judge": {"base_url": first.url, "model": MODEL, "models": models}}))
        assert [asked.body["model"] for asked in first.asked] == [MODEL, "house-model"]
    told = [one.said for one in said if one.ok and "answers, as" in one.said]
    assert told == [f"{name} at {first.url} answers, as {MODEL}" for name in (MODEL, "house-model")]
    (wrong,) = [one.said for one in said if one.ok is False]
    assert wrong.startswith("claude-haiku-4-5: the judge's endpoint knows no claude-haiku-4-5 at ")
    assert "correct judge.models.claude-haiku-4-5 or judge.models.claude-haiku-4-5.base_url" in wrong
    assert "write judge.models.house-model.price" in said[-1].said


async def test_an_endpoint_that_counts_no_tokens_and_a_model_without_a_price_are_told(tmp_path: Path) -> None:
    async with ScriptedJudge([Canned(usage=False)]) as server:
        judge = {"base_url": server.url, "model": MODEL}
        without = of("judge", await found(tmp_path, {"judge": judge}))[-1].said
        unpriced = of("judge", await found(tmp_path, {"judge": judge}))[-1].said
    assert "does not count tokens" in without
    assert "write judge.price" in unpriced


async def test_the_key_is_said_to_nobody(tmp_path: Path) -> None:
    key = "sk-4711-secret-key"
    async with ScriptedJudge(key="another") as server:
        findings = await found(tmp_path, {"judge": {"base_url": server.url, "model": MODEL}}, {"OPENAI_API_KEY": key})
    assert findings[-1].ok is False
    assert key not in repr(findings)


def test_the_command_ends_with_1_where_a_part_is_not_well(tmp_path: Path) -> None:
    (tmp_path / "tracegrade.yaml").write_text(f"judge: {{base_url: '{NOBODY}', model: m}}\nstore: {{path: data}}\n")
    said = tracegrade("doctor", "--json", cwd=tmp_path)
    assert said.code == 1
    assert [(one["part"], one["ok"]) for one in json.loads(said.out)][-1] == ("judge", False)
    (tmp_path / "tracegrade.yaml").write_text("store: {path: data}\n")
    well = tracegrade("doctor", cwd=tmp_path)
    assert well.code == 0
    assert [line.split()[:2] for line in well.out.splitlines()] == [
        ["ok", "configuration"],
        ["ok", "store"],
        ["-", "broker"],
        ["-", "judge"],
    ]
