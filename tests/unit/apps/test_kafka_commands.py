"""``topics create`` and ``lag``: what is wrong is a sentence, and what is right is the same for people and for programs."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from kafka_broker import Broker
from serving import tracegrade

from collectors.kafka import cluster
from pipeline.apps import cli
from pipeline.model.topology import TOPICS

COMMANDS = [("topics", "create"), ("lag",)]


def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[object, str]:
    monkeypatch.setattr("sys.argv", ["tracegrade", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, capsys.readouterr().err


@pytest.mark.usefixtures("own_process")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_a_cluster_in_the_configuration_the_keys_to_write_are_said(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sentence = 'tracegrade: the configuration names no Kafka cluster; write kafka: {brokers: ["host:9092"]} in it\n'
    assert said(capsys, monkeypatch, *command) == (2, sentence)
    (tmp_path / "tracegrade.yaml").write_text(
        'kafka: {brokers: ["host:9092"], protocol: sasl_ssl, username: u, password_env: NOT_SET}\n'
    )
    code, error = said(capsys, monkeypatch, *command)
    assert code == 2
    assert error.startswith("tracegrade: kafka.password_env: the environment has no NOT_SET")


@pytest.mark.usefixtures("own_process")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_brokers_that_do_not_answer_are_a_reason_to_try_again(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE_S", 0.5)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        (tmp_path / "t.yaml").write_text(f'kafka: {{brokers: ["{address}"]}}\n')
        code, error = said(capsys, monkeypatch, *command, "-c", str(tmp_path / "t.yaml"))
    assert code == 75
    assert error.startswith(f"tracegrade: the brokers of kafka.brokers ({address}) do not answer: ")
    assert error.endswith("; try again\n")
    assert error.count("\n") == 1


def test_nobody_who_has_no_cluster_waits_for_its_client() -> None:
    code = "from pipeline.apps import cli, commands\nimport sys; print('confluent_kafka' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "False\n"


@pytest.mark.kafka
def test_topics_are_made_and_their_lag_shown_to_people_and_to_programs(empty_broker: Broker, tmp_path: Path) -> None:
    config = tmp_path / "t.yaml"
    config.write_text(f'kafka: {{brokers: ["{empty_broker.address}"], partitions: 2}}\n')
    early = tracegrade("lag", "-c", config)
    assert (early.code, early.out) == (2, "")
    assert early.err.endswith("; run tracegrade topics create\n")

    made = tracegrade("topics", "create", "-c", config)
    assert (made.code, made.err) == (0, "")
    assert made.out.splitlines() == [f"{topic.name}: created, 2 partitions" for topic in TOPICS]
    again = tracegrade("topics", "create", "-c", config, "--json")
    assert [(one["topic"], one["outcome"]) for one in again.json] == [(topic.name, "unchanged") for topic in TOPICS]

    groups = tracegrade("lag", "-c", config, "--json").json
    assert [(one["group"], one["state"], one["lag"], len(one["partitions"])) for one in groups] == [
        (f"tracegrade.{node}", "not started", 0, 2) for node in ("assemble", "judge", "gate")
    ]
    shown = tracegrade("lag", "-c", config)
    assert (shown.code, shown.err) == (0, "")
    assert "assemble: tracegrade.traces (not started)" in shown.out
