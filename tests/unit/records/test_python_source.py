"""A source of one's own: a module and an entry point; what cannot be used is a sentence at the place where it is written."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from collectors.records.sources import opened
from pipeline.config.load import read
from pipeline.config.records import RecordSourceSettings, source_of
from pipeline.errors import ConfigurationError
from pipeline.scorers.source_plug_in import RECORDS

MODULE = """
import threading
from pydantic import SecretStr
from pipeline.model.settings import Settings
from pipeline.scorers.source_plug_in import SourcePlugIn

class LedgerSettings(Settings):
    token: SecretStr
    book: str = "main"

{how} read(key, settings):
    if key["order"] == "none":
        return None
    return [{{"order_id": key["order"], "book": settings.book, "apart": threading.current_thread() is not threading.main_thread()}}]

SOURCE = SourcePlugIn("ledger", "Reads our ledger.", read, LedgerSettings, ("order",))
"""
WRITTEN = {"python": {"use": "ledger", "settings": {"token": "hunter2"}}}


def a_package(folder: Path, text: str) -> None:
    (folder / "our_ledger.py").write_text(text)
    installed = folder / "our_ledger-1.0.dist-info"
    installed.mkdir(exist_ok=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: our-ledger\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[{RECORDS.name}]\nledger = our_ledger:SOURCE\n")


async def ask(**key: Any) -> Any:
    async with AsyncExitStack() as stack:
        return await (await opened("ours", RecordSourceSettings.model_validate(WRITTEN), stack))(key)


@pytest.mark.parametrize(("how", "apart"), [("def", True), ("async def", False)])
async def test_it_is_asked_in_a_thread_unless_it_is_a_coroutine_function(how: str, apart: bool, folder: Path) -> None:
    a_package(folder, MODULE.format(how=how))
    assert await ask(order="A-1") == [{"order_id": "A-1", "book": "main", "apart": apart}]
    assert await ask(order="none") is None


def test_its_version_and_settings_are_in_the_contract_and_its_secrets_are_not(folder: Path) -> None:
    a_package(folder, MODULE.format(how="def"))
    source = source_of("ours", RecordSourceSettings.model_validate(WRITTEN))
    assert source.parameters == frozenset({"order"})
    assert (source.terms["package"], source.terms["settings"]) == ("our-ledger 1.0", {"token": "**********", "book": "main"})
    assert len(source.terms["source"]) == 16


async def test_what_cannot_be_used_is_a_sentence(folder: Path) -> None:
    a_package(folder, "SOURCE = 1")
    with pytest.raises(
        ConfigurationError, match=r"records\.ours: the record source ledger = our_ledger:SOURCE of our-ledger is a int"
    ):
        await ask(order="A-1")


CONFIGURATION = """
records:
  ours:
    python: {use: ledger, settings: {token: hunter2}}
agents:
  default:
    rubric: null
    checks:
      records:
        - {name: refunded, source: ours, each: refund, key: {order: arguments.order_id}}
"""


def mistakes(folder: Path, text: str) -> list[str]:
    (folder / "tracegrade.yaml").write_text(text)
    return [f"{one.line}: {one.where}: {one.what}" for one in read(folder / "tracegrade.yaml", {}).mistakes]


def test_a_mistake_is_told_at_its_line_and_without_what_is_secret(folder: Path) -> None:
    a_package(folder, MODULE.format(how="def"))
    assert mistakes(folder, CONFIGURATION) == []
    wrong_key = CONFIGURATION.replace("{order:", "{id:")
    assert mistakes(folder, wrong_key) == [
        "10: agents.default.checks.records[0]: the parameters of ours are order; write exactly these under key"
    ]
    wrong_source = CONFIGURATION.replace("source: ours", "source: theirs")
    assert mistakes(folder, wrong_source) == [
        "10: agents.default.checks.records[0]: no record source is called theirs; the sources are: ours"
    ]
    (found,) = mistakes(folder, CONFIGURATION.replace("token: hunter2", "tokens: hunter2"))
    assert found.startswith("3: records.ours: ours: settings.token: Field required; ledger can be set by: token, book")
    assert "hunter2" not in found
    (found,) = mistakes(folder, CONFIGURATION.replace("use: ledger", "use: book"))
    assert found.startswith(
        "3: records.ours: no installed package brings a record source 'book'; those that are installed: ledger"
    )


def test_a_source_is_one_thing_and_is_not_waited_for_too_long(folder: Path) -> None:
    text = "records:\n  ours: {sql: {url: 'sqlite://', query: SELECT 1}, http: {url: 'https://a.example/{b}'}}\n"
    assert "write exactly one of http, sql, python" in mistakes(folder, text)[0]
    text = "records:\n  ours: {sql: {url: 'sqlite://', query: SELECT 1}, deadline: 61s}\n"
    assert mistakes(folder, text)[0].startswith("2: records.ours.deadline: ")
