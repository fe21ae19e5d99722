"""``tracegrade dead-letters`` on a running ``up``, on its folder when it has stopped, and never through a project's key."""

import asyncio
import json
import signal
import stat
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Up, an_up, eventually, get, tracegrade
from unit.kafka.foreign import BAD_SPANS, GOOD, otlp, request_of

from pipeline.apps import served
from pipeline.config.store import StoreSettings
from pipeline.model.time import SECOND
from pipeline.model.topology import DeadLetter
from pipeline.runtime.clock import SystemClock
from sinks.clickhouse.store import Store

CONFIG = """
project: shop
store: {{path: {data}}}
receiver: {{http_port: 0, grpc_port: 0, keys: {{shop: [{key}]}}}}
assemble: {{quiet_period: 300ms}}
agents: {{default: {{rubric: null}}}}
"""
KEY = "a-key-of-the-shop-that-is-long"


def configured(folder: Path) -> Path:
    path = folder / "tracegrade.yaml"
    path.write_text(CONFIG.format(data=folder / "data", key=KEY))
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return configured(tmp_path)


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """An ``up`` that nobody sends anything to."""
    folder = tmp_path_factory.mktemp("idle")
    with an_up(configured(folder), folder / "data") as running:
        yield running


@pytest.fixture
def up(config: Path, tmp_path: Path) -> Iterator[Up]:
    with an_up(config, tmp_path / "data") as running:
        yield running


def post(up: Up, body: bytes, media: str = "application/x-protobuf") -> int:
    headers = {"Content-Type": media, "Authorization": f"Bearer {KEY}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{up.http}/v1/traces", body, headers), timeout=30) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def listed(config: Path, *more: str) -> list[dict[str, Any]]:
    said = tracegrade("dead-letters", "list", "-c", config, "--json", *more)
    assert said.code == 0, said.err
    found: list[dict[str, Any]] = said.json["letters"]
    return found


def test_what_was_refused_is_listed_shown_and_sent_back_while_up_runs_and_after(up: Up, config: Path) -> None:
    assert post(up, b"\x1b[31mgarbage") == 400
    assert post(up, request_of(GOOD, BAD_SPANS["no ids"])) == 200
    letters = eventually(lambda: found if len(found := listed(config)) == 2 else None)
    assert {letter["origin"] for letter in letters} == {"receiver: /v1/traces"}
    assert {letter["project"] for letter in letters} == {"shop"}

    garbage = next(letter for letter in letters if letter["size"] == 12)
    shown = tracegrade("dead-letters", "show", garbage["id"][:8], "-c", config)
    assert shown.code == 0, shown.err
    assert r"\u001b[31mgarbage" in shown.out
    assert "content-type: application/x-protobuf" in shown.out
    assert "1b 5b 33 31 6d" in tracegrade("dead-letters", "show", garbage["id"], "-c", config, "--hex").out

    again = tracegrade("dead-letters", "replay", garbage["id"], "-c", config)
    assert (again.code, again.out.splitlines()[-1]) == (1, "0 of 1 sent back; the others stay")
    assert "failed: the body is not an OTLP trace request" in again.out

    assert up.ends(signal.SIGTERM) < 30
    assert [letter["outcome"] for letter in listed(config) if letter["id"] == garbage["id"]] == ["failed"]


def test_a_letter_that_this_release_can_read_becomes_spans_and_is_no_longer_listed(config: Path, tmp_path: Path) -> None:
    async def bury() -> None:
        store = Store.open(StoreSettings(path=tmp_path / "data"))
        try:
            now = SystemClock().now()
            await store.bury(
                [DeadLetter("shop", "receiver: /v1/traces", "of another release", otlp("back"), received_ns=now - SECOND)]
            )
        finally:
            await store.close()

    asyncio.run(bury())
    with an_up(config, tmp_path / "data") as up:
        sent = tracegrade("dead-letters", "replay", "--all", "--reason", "another release", "-c", config, "--json")
        assert (sent.code, [one["outcome"] for one in sent.json]) == (0, ["sent"])
        assert listed(config) == []
        (kept,) = listed(config, "--all")
        assert kept["detail"] == "1 to tracegrade.traces"
        again = tracegrade("dead-letters", "replay", kept["id"], "-c", config)
        assert again.code == 0
        eventually(lambda: get(f"{up.http}/api/accounting", f"Bearer {KEY}").json["not_an_agent_run"] == 1)


def test_no_key_of_a_project_reaches_them(idle: Up) -> None:
    data = idle.config.parent / "data"
    admin = served.admin(data)
    assert admin is not None
    assert admin.url.startswith("http://127.0.0.1:")
    assert get(f"{idle.http}/dead-letters", f"Bearer {KEY}").status == 404
    assert get(f"{idle.http}/api/dead-letters", f"Bearer {KEY}").status == 404
    for wrong in ("", f"Bearer {KEY}", f"Bearer {admin.token[:-1]}", f"Basic {admin.token}"):
        assert get(f"{admin.url}/dead-letters", wrong).status == 401
    assert get(f"{admin.url}/dead-letters", f"Bearer {admin.token}").json == []
    told = data / served.FILE
    assert stat.S_IMODE(told.stat().st_mode) == 0o600
    assert json.loads(told.read_text())["url"] == idle.http


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("show", "ffff"), "no dead letter has an id that begins with 'ffff'"),
        (("show", "ff"), "write at least 4 digits"),
        (("replay",), "write the ids of the letters to send back, or --all"),
        (("replay", "--all", "abcd"), "write the ids of the letters to send back, or --all"),
        (("replay", "abcd", "--reason", "x"), "--reason chooses among all letters"),
    ],
)
def test_what_is_asked_wrongly_is_a_sentence(idle: Up, arguments: tuple[str, ...], sentence: str) -> None:
    said = tracegrade("dead-letters", *arguments, "-c", idle.config)
    assert said.code == 2
    assert sentence in said.err


def test_without_any_data_there_is_a_sentence_too(config: Path) -> None:
    said = tracegrade("dead-letters", "list", "-c", config)
    assert said.code == 2
    assert "start tracegrade up" in said.err
