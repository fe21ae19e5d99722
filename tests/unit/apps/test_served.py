"""How a command finds a running ``up``, and what it makes of its answers."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from pipeline.apps import served
from pipeline.config.receiver import ReceiverSettings
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError, TemporaryError


def test_an_address_lasts_as_long_as_its_process_holds_it(tmp_path: Path) -> None:
    assert served.address(tmp_path) is None
    with served.announced(tmp_path, "http://127.0.0.1:1"):
        assert served.address(tmp_path) == "http://127.0.0.1:1"
        left_behind = (tmp_path / served.FILE).read_text()
    assert served.address(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / served.FILE).write_text(left_behind)
    assert served.address(tmp_path) is None
    with served.announced(tmp_path, "http://127.0.0.1:2"):
        assert served.address(tmp_path) == "http://127.0.0.1:2"


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', "{}", "null"])
def test_a_file_that_is_something_else_is_no_address(tmp_path: Path, text: str) -> None:
    (tmp_path / served.FILE).write_text(text)
    assert served.address(tmp_path) is None


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[str]]]:
    """A server with one answer, and the keys that were sent to it."""
    keys: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys.append(self.headers.get("Authorization", ""))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", keys
        finally:
            server.shutdown()
            thread.join()


def test_a_question_carries_the_key_and_goes_past_every_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with answering(200, b'{"runs": []}') as (url, keys):
        assert served.ask(url, "/x", "secret") == {"runs": []}
        assert served.ask(url, "/x") == {"runs": []}
    assert keys == ["Bearer secret", ""]


@pytest.mark.parametrize(
    ("status", "body", "error", "sentence"),
    [
        (404, json.dumps({"error": "there is no such run"}).encode(), ConfigurationError, "there is no such run"),
        (401, b'{"error": "send an API key"}', ConfigurationError, "send an API key"),
        (404, b"404: Not Found", ConfigurationError, "answered 404 to /x; its log says why"),
        (400, b"[]", ConfigurationError, "answered 400"),
        (503, b'{"error": "the disk is full"}', TemporaryError, "the disk is full"),
        (500, b"<html>\xff", TemporaryError, "answered 500 to /x; its log says why"),
        (200, b"this is no JSON", TemporaryError, "does not answer"),
    ],
)
def test_whatever_is_answered_becomes_a_sentence(status: int, body: bytes, error: type[Exception], sentence: str) -> None:
    with answering(status, body) as (url, _), pytest.raises(error, match=sentence):
        served.ask(url, "/x")


def test_nobody_there_is_a_sentence_too() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(TemporaryError, match="does not answer"):
            served.ask(f"http://127.0.0.1:{silent.getsockname()[1]}", "/x")


def test_the_project_s_first_key_that_can_be_read_is_sent() -> None:
    receiver = ReceiverSettings.model_validate({"keys": {"acme": ["env:GONE", "env:HERE"], "open": ["plain"]}})
    assert served.key_of(TracegradeSettings(), {}) == ""
    assert served.key_of(TracegradeSettings(project="acme", receiver=receiver), {"HERE": " k "}) == "k"
    assert served.key_of(TracegradeSettings(project="open", receiver=receiver), {}) == "plain"
    for project, environment in (("acme", {}), ("nobody", {"HERE": "k"})):
        with pytest.raises(ConfigurationError, match=f"project '{project}' has no key"):
            served.key_of(TracegradeSettings(project=project, receiver=receiver), environment)
