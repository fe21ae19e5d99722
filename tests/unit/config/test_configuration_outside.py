"""What a configuration names on this machine is looked at by check, by what it should be; who does not need it starts without."""

from pathlib import Path

import pytest

from pipeline.config.check import check
from pipeline.config.load import load

NAMES = """
receiver:
  tls:
    cert_file: {0}
    key_file: {0}
    client_ca_file: {0}
kafka:
  brokers: ["k:9092"]
  protocol: ssl
  ca_file: {0}
judge:
  base_url: http://127.0.0.1:1/v1
  model: m
  api_key_file: {0}
  models:
    other: {{base_url: http://127.0.0.1:2/v1, api_key_file: {0}}}
records:
  orders: {{http: {{url: "http://orders.example.com/{{order_id}}", header_files: {{x-key: {0}}}}}}}
  ledger: {{sql: {{url_file: {0}, query: "SELECT 1 FROM t WHERE id = :order_id"}}}}
"""
PLACES = {
    "receiver.tls.cert_file",
    "receiver.tls.key_file",
    "receiver.tls.client_ca_file",
    "kafka.ca_file",
    "judge.api_key_file",
    "judge.models.other.api_key_file",
    "records.orders.http.header_files.x-key",
    "records.ledger.sql.url_file",
}


def told(folder: Path, text: str) -> dict[str, str]:
    """Return what check finds wrong, by place."""
    (path := folder / "tracegrade.yaml").write_text(text.lstrip("\n"))
    errors = [one.split(": ", 2) for one in check(path, {}).errors]
    load(path, {})
    return {where: what for _, where, what in errors}


@pytest.mark.parametrize(
    ("named", "what"),
    [
        ("nosuch.pem", "{}/nosuch.pem does not exist; write the path of a file"),
        ("folder", "{}/folder is a folder; write the path of a file"),
    ],
)
def test_each_file_that_is_named_is_looked_for(named: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert told(tmp_path, NAMES.format(named)) == dict.fromkeys(PLACES, what.format(tmp_path))


def test_files_that_are_there_are_good(tmp_path: Path) -> None:
    (tmp_path / "some.pem").touch()
    assert told(tmp_path, NAMES.format("some.pem")) == {}


def test_the_store_is_a_folder_or_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    assert told(tmp_path, "store: {path: file}") == {
        "store.path": f"{tmp_path}/file is a file; write the path of a folder, which is made where there is none"
    }
    beneath = f"{tmp_path}/file/data cannot be made in {tmp_path}/file; write a folder that you may write in"
    assert told(tmp_path, "store: {path: file/data}") == {"store.path": beneath}
    assert told(tmp_path, "store: {path: folder}") == told(tmp_path, "store: {path: new/data}") == {}


def test_a_server_needs_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tracegrade-data").touch()
    assert "store.path" in told(tmp_path, "project: a")
    assert told(tmp_path, "store: {url: 'http://h:8123'}") == {}
