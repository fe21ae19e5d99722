"""The commands against a ClickHouse server, as processes of their own; data that another process wrote."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import a_span
from clickhouse_front import Front
from clickhouse_front_databases import a_database, a_database_of_a_real_server
from serving import Said, tracegrade
from unit.clickhouse.records import a_run, a_run_version, a_version

from pipeline.config.store import StoreSettings
from pipeline.model.golden import GoldenCase
from pipeline.model.result import Outcome, Verdict
from pipeline.stages.promote import case, members
from sinks.clickhouse.store import Store

VARIABLE = "STORE_PASSWORD"
PROJECT = "shop"
RUN = a_run(PROJECT, request="Refund order 1042, please.")


def configured(folder: Path, settings: StoreSettings) -> Path:
    config = folder / "tracegrade.yaml"
    password = f", password_env: {settings.password_env}" if settings.password_env else ""
    config.write_text(
        f"project: {PROJECT}\nstore: {{url: '{settings.url}', database: {settings.database}{password}}}\n"
        "agents: {default: {rubric: null}}\n"
    )
    return config


async def write(settings: StoreSettings) -> GoldenCase:
    """Write a run that failed, and the golden case that it became."""
    store = await asyncio.to_thread(Store.open, settings)
    await store.insert_spans([a_span(project=PROJECT)])
    version = a_run_version(RUN, verdict=Verdict(Outcome.FAIL, "refunded twice"), failing=("verdict",))
    await store.write([a_version(version)])
    found = await store.runs_by_id(PROJECT, [RUN.run_id])
    rows = members(found[RUN.run_id])
    made = case(rows, found)
    assert made is not None
    await store.write_members(rows)
    await store.write_cases([made])
    await store.close()
    return made


def json_of(said: Said) -> Any:
    assert said.code == 0, said.err
    return said.json


def assert_every_command_reads(settings: StoreSettings, folder: Path) -> None:
    """Every command that reads says what was written."""
    made = asyncio.run(write(settings))
    config = configured(folder, settings)
    assert json_of(tracegrade("check", config, "--json"))["errors"] == []
    board = json_of(tracegrade("scoreboard", "--json", "-c", config))
    assert [(line["run_id"], line["verdict"], line["reason"]) for line in board["runs"]] == [
        (RUN.run_id, "fail", "refunded twice")
    ]
    assert (board["accounting"]["received"], board["accounting"]["judged"]) == (1, 1)
    assert "refunded twice" in tracegrade("scoreboard", "-c", config).out
    detail = json_of(tracegrade("run", RUN.run_id[:12], "--json", "-c", config))
    assert (detail["line"]["run_id"], detail["request"], detail["answer"]) == (RUN.run_id, RUN.request, RUN.answer)
    exported = json_of(tracegrade("golden", "export", folder, "-c", config, "--json"))
    assert exported["cases"] == 1
    (line,) = Path(exported["file"]).read_text().splitlines()
    assert json.loads(line)["id"] == made.id


@pytest.fixture
def settings(front: Front) -> Iterator[StoreSettings]:
    with a_database(front.url) as made:
        yield made


def test_the_commands_read_what_other_processes_wrote_to_a_server(settings: StoreSettings, tmp_path: Path) -> None:
    assert_every_command_reads(settings, tmp_path)


@pytest.mark.server
def test_the_commands_read_what_other_processes_wrote_to_a_real_server(tmp_path: Path) -> None:
    with a_database_of_a_real_server() as settings:
        assert_every_command_reads(settings, tmp_path)


@pytest.mark.parametrize("command", [("scoreboard",), ("run", "0123"), ("golden", "export", ".")])
def test_a_server_that_does_not_answer_is_one_sentence_and_worth_another_try(command: tuple[str, ...], tmp_path: Path) -> None:
    settings = StoreSettings(url="http://ann@127.0.0.1:1")
    said = tracegrade(*command, "-c", configured(tmp_path, settings), cwd=tmp_path)
    assert (said.code, said.out) == (75, "")
    (sentence,) = said.err.splitlines()
    assert sentence.startswith("tracegrade: the ClickHouse server at http://ann@127.0.0.1:1 cannot answer now: ")
    assert sentence.endswith("Connection refused; try again")


def test_a_server_that_is_down_behind_a_proxy_is_worth_another_try(tmp_path: Path) -> None:
    with Front(tmp_path / "front") as front:
        front.faults(down_s=60)
        said = tracegrade("scoreboard", "-c", configured(tmp_path, StoreSettings(url=front.url)))
    assert said.code == 75
    (sentence,) = said.err.splitlines()
    assert "503" in sentence


def test_a_wrong_password_is_one_sentence_for_a_person_and_the_right_one_opens(tmp_path: Path) -> None:
    with Front(tmp_path / "front", "ann", "let-me-in") as front:
        config = configured(tmp_path, StoreSettings(url=front.url, password_env=VARIABLE))
        right = tracegrade("scoreboard", "--json", "-c", config, environment={VARIABLE: "let-me-in"})
        wrong = tracegrade("scoreboard", "--json", "-c", config, environment={VARIABLE: "wrong-guess"})
        unset = tracegrade("scoreboard", "--json", "-c", config)
    assert json_of(right)["runs"] == []
    assert (wrong.code, unset.code) == (2, 2)
    (sentence,) = wrong.err.splitlines()
    assert "refuses the user; check store.url, store.password_env" in sentence
    assert "wrong-guess" not in sentence
    assert unset.err.splitlines() == [f"tracegrade: store.password_env names {VARIABLE}, which is not set in the environment"]
