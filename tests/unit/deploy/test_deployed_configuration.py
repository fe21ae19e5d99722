"""The configuration that collectors and workers share passes ``check``, and names what docker-compose.yml has."""

import re
from typing import Any
from urllib.parse import urlsplit

from unit.deploy.composition import ROOT, ours, services

from pipeline.config.check import check
from pipeline.config.load import load
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.judges.scripted import MODEL

FILE = ROOT / "deploy" / "compose" / "tracegrade.yaml"
ENVIRONMENT = {name: value for one in ours().values() for name, value in one.get("environment", {}).items()}


def settings() -> TracegradeSettings:
    return load(FILE, ENVIRONMENT)


def test_it_passes_check_and_what_check_warns_of_is_true() -> None:
    """A judge that nobody has compared with people decides nothing: the gates on its word hold, and say so."""
    report = check(FILE, ENVIRONMENT)
    assert report.errors == ()
    (warning,) = report.warnings
    assert "the gate verdict-floor holds for runs of default: the judge is uncalibrated" in warning


def test_it_says_which_variable_is_missing() -> None:
    warnings = "\n".join(check(FILE, {}).warnings)
    for name in ("CLICKHOUSE_PASSWORD", "TRACEGRADE_KEY", "JUDGE_API_KEY"):
        assert f"the environment has no {name}" in warnings


def test_a_process_is_given_only_the_secrets_that_it_uses() -> None:
    given = {name: set(one.get("environment", {})) for name, one in ours().items()}
    assert given == {
        "topics": set(),
        "bridge": set(),
        "collector-1": {"TRACEGRADE_KEY", "CLICKHOUSE_PASSWORD"},
        "collector-2": {"TRACEGRADE_KEY", "CLICKHOUSE_PASSWORD"},
        "worker": {"CLICKHOUSE_PASSWORD", "JUDGE_API_KEY"},
        "judge": set(),
    }


def test_addresses_are_those_of_the_services() -> None:
    kafka, store, judge = settings().kafka, urlsplit(settings().store.url or ""), urlsplit(settings().judge.base_url or "")
    assert kafka is not None
    assert services()["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://{kafka.brokers[0]}"
    assert (store.hostname in services(), store.port, store.username) == (True, 8123, "tracegrade")
    command = services()[str(judge.hostname)]["command"]
    assert command[command.index("--port") + 1] == str(judge.port)
    assert settings().judge.model == MODEL


def test_health_is_asked_where_it_is_answered() -> None:
    assert asked("worker") == (settings().worker.http_port, "/healthz")
    assert asked("collector-1") == asked("collector-2") == (settings().receiver.http_port, "/healthz")
    assert asked("judge") == (8790, "/v1/models")


def asked(service: str) -> tuple[int, str]:
    """Where a service's health check asks."""
    code: Any = services()[service]["healthcheck"]["test"][-1]
    found = re.search(r"HTTPConnection\('127\.0\.0\.1', (\d+), timeout=\d+\); c\.request\('GET', '([^']+)'\)", code)
    assert found is not None
    return int(found[1]), found[2]


def test_published_ports_are_those_that_the_receiver_listens_on() -> None:
    inside = {int(port.rsplit(":", 1)[1]) for name in ("collector-1", "collector-2") for port in services()[name]["ports"]}
    assert inside == {settings().receiver.grpc_port, settings().receiver.http_port}


def test_no_more_workers_are_started_than_there_are_partitions() -> None:
    kafka = settings().kafka
    assert kafka is not None
    assert services()["worker"]["deploy"]["replicas"] <= kafka.partitions


def test_every_command_finds_the_file_without_being_told() -> None:
    for name, service in ours().items():
        if name != "judge":
            assert service["working_dir"] == "/etc/tracegrade"
            assert "./deploy/compose:/etc/tracegrade:ro" in service["volumes"]
            assert "/etc/tracegrade/tracegrade.yaml" in service["command"]
