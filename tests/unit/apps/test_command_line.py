"""The command line: what a person can fix is a sentence and exit code 2, never a traceback; and nobody waits for what is not used."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from serving import tracegrade

from pipeline.apps import cli, served
from pipeline.config.load import load

HEAVY = {"openai", "grpc", "chdb", "clickhouse_connect", "aiohttp", "jinja2", "opentelemetry"}


def imported_by(code: str) -> set[str]:
    """Names of the heavy packages that a fresh interpreter has after running the code."""
    shown = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return HEAVY & set(shown.stdout.split())


def test_help_waits_for_nothing() -> None:
    assert imported_by("from pipeline.apps import cli") == set()


def test_asking_a_running_up_loads_neither_engine_nor_judge() -> None:
    assert (
        imported_by("from pipeline.apps import cli, served, show, show_run\nfrom pipeline.config.load import load; load()")
        == set()
    )


MISTAKES = [
    (("scoreboard", "-c", "missing.yaml"), "missing.yaml: cannot be read"),
    (("scoreboard",), "there is no data in tracegrade-data; start tracegrade up, or name the folder as store.path"),
    (("scoreboard", "--limit", "0"), "greater than or equal to 1"),
    (("run", " "), "the run's id is empty; write as much of its beginning as is unique"),
    (("run",), "Missing argument"),
    (("up", "-c", "bad.yaml"), "bad.yaml:1: agents.a.sampling.rate: 2 is not between 0 and 1; write a share such as 0.2"),
    (("check", "missing.yaml"), "missing.yaml: cannot be read"),
    (("--log-level", "loud", "check"), "--log-level is 'loud'; write one of debug, info, warning, error"),
    (("replay", "missing.jsonl"), "missing.jsonl does not exist"),
    (("replay", "bad.yaml"), "bad.yaml is neither JSON nor one JSON document a line"),
    (("replay", "some", "--times", "soon"), "--times is 'soon'; write one of original, shifted, backfill"),
    (("replay", "some", "--protocol", "smtp"), "--protocol is 'smtp'; write one of grpc, http/protobuf"),
    (("replay", "some", "--endpoint", "http://127.0.0.1:1"), "http://127.0.0.1:1 does not answer"),
    (("replay", "some", "--endpoint", "ftp://127.0.0.1"), "'ftp://127.0.0.1' is no OTLP endpoint"),
    (("demo", "--keep", "full"), "--keep: full is not empty; name a folder that does not exist yet"),
    (("demo", "--keep", "full/file"), "--keep: full/file cannot be made: Not a directory; name another folder"),
    (("demo", "--traces", "empty"), "there are no recorded traces in empty"),
    (("demo", "--traces", "nosuch"), "--traces: nosuch does not exist; name a folder of recorded traces, or a file"),
    (
        ("replay", "empty"),
        "there are no recorded traces in empty: files whose names end in .json, .jsonl, .ndjson are looked for",
    ),
    (("replay", "some", "-c", "elsewhere.yaml"), "http://127.0.0.1:2 does not answer"),
    (("replay", "some", "-c", "elsewhere.yaml", "--protocol", "http/protobuf"), "http://127.0.0.1:1 does not answer"),
    (("replay", "some", "-c", "elsewhere.yaml", "--endpoint", "http://127.0.0.1:3"), "http://127.0.0.1:3 does not answer"),
    (("replay", "some", "-c", "bad.yaml"), "bad.yaml:1: agents.a.sampling.rate: 2 is not between 0 and 1"),
    (("replay", "some", "-c", "free.yaml"), "receiver.grpc_port is 0, so the system chooses the port; name it with --endpoint"),
    (("feedback", "ab", "--value", "up", "-c", "elsewhere.yaml"), "http://127.0.0.1:1/api/feedback does not answer"),
    (
        ("feedback", "ab", "--value", "up", "-c", "keyed.yaml"),
        "project 'default' has no key in receiver.keys that can be read here",
    ),
    (("feedback", "ab", "--value", "nan"), "--value is 'nan'; write up, down or a finite number"),
    (("feedback", "ab", "--value", "-inf"), "--value is '-inf'; write up, down or a finite number"),
    (("explain", "bad.yaml", "--run", "ab"), "files and --run are two things to explain; name files of recorded traces"),
    (("key", ""), "PROJECT is ''; write letters, digits and signs, such as support-eu"),
    (("key", "a\nb"), r"PROJECT is 'a\nb'; write letters, digits and signs"),
    (("check", "full"), "full: is a folder; name the file in it"),
    (("check", ""), ".: is a folder; name the file in it, or write nothing to use ./tracegrade.yaml"),
    (("golden",), "export"),
    (
        ("feedback", "ab", "--value", "up", "--endpoint", "http://127.0.0.1:1"),
        "http://127.0.0.1:1/api/feedback does not answer (Connection refused); start",
    ),
    (("feedback", "ab"), "Missing option '--value'"),
    (("nonsense",), "No such command 'nonsense'"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("commands")
    (made / "bad.yaml").write_text("agents: {a: {sampling: {rate: 2}}}\nfoo: 1\n")
    (made / "elsewhere.yaml").write_text("receiver: {host: 0.0.0.0, grpc_port: 2, http_port: 1, keys: {default: [k]}}\n")
    (made / "free.yaml").write_text("receiver: {grpc_port: 0}\n")
    (made / "keyed.yaml").write_text(f"receiver: {{keys: {{default: ['sha256:{'0' * 64}']}}}}\n")
    (made / "some").mkdir()
    (made / "some" / "notes.json").write_text('{"hello": "world"}')
    (made / "empty").mkdir()
    (made / "full").mkdir()
    (made / "full" / "file").touch()
    return made


@pytest.mark.usefixtures("own_process")
@pytest.mark.parametrize(("arguments", "sentence"), MISTAKES, ids=[" ".join(arguments) for arguments, _ in MISTAKES])
def test_a_mistake_is_a_sentence_and_exit_code_2(
    folder: Path, arguments: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["tracegrade", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert sentence in " ".join((said.out + said.err).replace("│", "").split())


def test_check_says_what_a_configuration_comes_to_and_what_is_wrong_with_it(folder: Path) -> None:
    good = tracegrade("check", cwd=folder)
    assert (good.code, good.err) == (0, "")
    assert good.out.endswith("the defaults: good\n")
    bad = tracegrade("check", "bad.yaml", "--json", cwd=folder)
    assert bad.code == 2
    assert [error.split(": ")[0] for error in bad.json["errors"]] == ["bad.yaml:1", "bad.yaml:2"]


def test_mistakes_of_the_demo_are_told_before_anything_is_started() -> None:
    told = "from pipeline.apps.demo_command import demo\nfrom pathlib import Path\nimport contextlib"
    asked = "with contextlib.suppress(ConfigurationError): demo(Path('/nosuch'), None)"
    assert imported_by(f"{told}\nfrom pipeline.errors import ConfigurationError\n{asked}") == set()


@pytest.mark.usefixtures("own_process")
@pytest.mark.parametrize("project", ["default", "a b/../c", "null", "1", 'quo"te', "a: b, {c}", "zürich", "${HOME}", " #x"])
def test_what_key_says_to_write_can_be_read(
    project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["tracegrade", "key", project])
    with pytest.raises(SystemExit):
        cli.main()
    said = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines()[:3])
    path = tmp_path / "tracegrade.yaml"
    path.write_text(said["write"].strip(), encoding="utf-8")
    (found,) = load(path, {}).receiver.keys.items()
    assert (found[0], [one.get_secret_value() for one in found[1]]) == (project, [said["digest"].strip()])


def test_the_version_is_shown() -> None:
    assert tracegrade("--version").out == "tracegrade 0.1.0\n"


def test_an_up_that_goes_away_is_a_reason_to_try_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    config = tmp_path / "tracegrade.yaml"
    config.write_text("store: {path: data}\n")
    with served.announced(data, "http://127.0.0.1:1"):
        said = tracegrade("scoreboard", "-c", config)
    assert said.code == 75
    assert said.err.startswith("tracegrade: the running up at http://127.0.0.1:1 does not answer")
    assert said.err.endswith("; try again\n")


def test_replaying_where_there_is_nothing_to_send_is_said_and_is_json_if_asked(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"hello": "world"}')
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        said = tracegrade("replay", tmp_path, "--endpoint", f"http://127.0.0.1:{port}")
        as_json = tracegrade("replay", tmp_path, "--endpoint", f"http://127.0.0.1:{port}", "--json")
    assert f"skipped {tmp_path / 'notes.json'}: " in said.out
    assert "sent 0 of 0 spans" in said.out
    assert as_json.json["skipped"].keys() == {str(tmp_path / "notes.json")}


def test_json_is_utf_8_and_a_table_is_what_the_terminal_can_show(tmp_path: Path) -> None:
    (tmp_path / "tracegrade.yaml").write_text("project: zürich\nstore: {path: störe}\n", encoding="utf-8")
    in_ascii = {**os.environ, "PYTHONIOENCODING": "ascii"}
    asked = [sys.executable, "-m", "pipeline.apps", "check"]
    written = subprocess.run([*asked, "--json"], cwd=tmp_path, env=in_ascii, capture_output=True, check=True).stdout
    assert json.loads(written)["summary"]["project"] == "zürich"
    assert (
        b"project z?rich, store st?re"
        in subprocess.run(asked, cwd=tmp_path, env=in_ascii, capture_output=True, check=True).stdout
    )


def test_a_reader_who_stops_reading_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "pipeline.apps", "check", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
