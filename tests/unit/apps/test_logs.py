"""Own logs: one line an event whoever makes it, and no text of somebody else's acts or forges a line."""

import io
import json
import logging

import pytest
import structlog

from pipeline.apps.logs import LONGEST, Seldom, log_to_stderr, mask_too
from pipeline.config.redaction import RuleSettings

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


@pytest.mark.usefixtures("own_process")
def test_what_a_users_rule_finds_is_masked_here_too(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    log_to_stderr()
    mask_too([RuleSettings(name="customer", pattern=r"\bC-[0-9]{6}\b")])
    structlog.get_logger().warning("refused", reason="traceId of C-471100 is not hex")
    mask_too([])
    structlog.get_logger().warning("refused", reason="C-471100")
    first, second = (json.loads(line)["reason"] for line in stream.getvalue().splitlines())
    assert (first, second) == ("traceId of [redacted:customer] is not hex", "C-471100")


LINE_ENDS = "a\r\nb\x85c\u2028d\u2029e\x0bf\x0cg\x1b]0;title\x07h"


@pytest.mark.usefixtures("own_process")
@pytest.mark.parametrize("terminal", [False, True])
def test_no_end_of_a_line_in_a_value_is_one(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    log_to_stderr()
    structlog.get_logger().warning("refused", agent=LINE_ENDS, path=[LINE_ENDS], header={"x": LINE_ENDS})
    logging.getLogger("a.library").error("could not handle %r", LINE_ENDS)
    assert len(stream.getvalue().splitlines()) == 2  # splitlines knows them all
    assert not {"\x1b]", "\x07", "\x85", "\u2028", "\u2029"} & set(stream.getvalue())


@pytest.mark.usefixtures("own_process")
@pytest.mark.parametrize("terminal", [False, True])
def test_secrets_are_masked_whoever_logs_them(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    log_to_stderr()
    key = "AKIAIOSFODNN7EXAMPLE"
    header = {"cookie": "hunter2"}
    structlog.get_logger().warning("refused", reason=f"bad {key}", nested={"a": [key]}, error=ValueError(key), header=header)
    logging.getLogger("a.library").error("Authorization: Bearer %s", "abcdef0123456789")
    try:
        int(key)
    except ValueError:
        structlog.get_logger().exception("failed")
    shown = stream.getvalue()
    assert shown.count("[redacted:aws]") == 4
    assert not [secret for secret in (key, "hunter2", "abcdef0123456789") if secret in shown]


@pytest.mark.usefixtures("own_process")
def test_a_long_value_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    log_to_stderr()
    structlog.get_logger().warning("refused", reason="x" * 1_000_000, parts=["y" * 1_000_000])
    event = json.loads(stream.getvalue())
    assert event["reason"] == "x" * (LONGEST // 2) + "…" + "x" * (LONGEST // 2)
    assert len(event["parts"]) == LONGEST + 1


def test_a_library_that_repeats_itself_is_heard_now_and_then() -> None:
    seldom, heard = Seldom(), []
    for tenth in range(150):
        record = logging.LogRecord("aiokafka", logging.ERROR, "", 0, "Unable connect to %s", (f"broker {tenth % 3}",), None)
        record.created = tenth / 10
        if seldom.filter(record):
            heard.append(record.getMessage())
    assert heard == ["Unable connect to broker 0", "Unable connect to broker 1 (99 more like it before)"]
    other = logging.LogRecord("aiokafka", logging.ERROR, "", 0, "Fetch failed", (), None)
    assert seldom.filter(other)


class Written:
    """A stderr that knows what was written at once."""

    def __init__(self) -> None:
        self.writes: list[str] = []

    def write(self, text: str) -> int:
        self.writes.append(text)
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def test_a_line_is_one_write_whoever_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = Written()
    monkeypatch.setattr("sys.stderr", stderr)
    log_to_stderr()
    structlog.get_logger().info("ours")
    logging.getLogger("librdkafka").warning("theirs")
    assert [json.loads(text)["event"] for text in stderr.writes] == ["ours", "theirs"]
    assert all(text.endswith("\n") for text in stderr.writes)
