"""Own logs: one line an event whoever makes it, and no text of somebody else's acts or forges a line."""

import io
import json
import logging

import pytest
import structlog

from pipeline.apps.logs import log_to_stderr

FORGED = 'x\n{"event": "all is well"}\x1b[2J\u202e'


class Terminal(io.StringIO):
    """Somebody watches."""

    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("own_process")
def test_each_event_is_one_line_of_json_with_its_values_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    log_to_stderr("warning")
    structlog.get_logger().info("not shown")
    structlog.get_logger().warning("refused", agent=FORGED)
    logging.getLogger("a.library").info("not shown")
    logging.getLogger("a.library").error("could not handle %s", FORGED)
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(event["event"], event["level"]) for event in events] == [
        ("refused", "warning"),
        ('could not handle x\n{"event": "all is well"}\\u001b[2J\\u202e', "error"),
    ]
    assert events[0]["agent"] == FORGED
    assert stream.getvalue().isascii()


@pytest.mark.usefixtures("own_process")
def test_in_a_terminal_no_value_acts(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    log_to_stderr()
    secret = "sk-secret"
    try:
        int(FORGED)
    except ValueError:
        structlog.get_logger().exception("failed", agent=FORGED)
    shown = stream.getvalue()
    assert repr(FORGED) in shown
    assert "\x1b[2J" not in shown
    assert "\u202e" not in shown
    assert secret not in shown, "a traceback must not show what variables hold"
