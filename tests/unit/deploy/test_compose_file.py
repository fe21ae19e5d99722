"""docker-compose.yml: valid by the specification's own schema, pinned, bounded, watched, and without a password."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.main import get_command
from typer.testing import CliRunner
from unit.deploy.composition import (
    EXAMPLE,
    FILE,
    ROOT,
    MissingVariableError,
    composition,
    example,
    filled_in,
    ours,
    references,
    services,
)

from pipeline.apps.cli import app

SCHEMA = Draft202012Validator(json.loads((Path(__file__).parent / "compose-spec.json").read_text(encoding="utf-8")))
SECRET = re.compile(r"PASSWORD|KEY|SECRET|TOKEN")
NOT_OURS = sorted(set(services()) - set(ours()))
ONE_SHOT = {"topics"}
LONG_RUNNING = sorted(set(services()) - ONE_SHOT)


def test_the_file_is_valid_by_the_compose_specification() -> None:
    assert [error.message for error in SCHEMA.iter_errors(composition(filled_in()))] == []


def test_the_schema_would_object_to_a_key_that_compose_does_not_know() -> None:
    wrong = composition(filled_in())
    wrong["services"]["kafka"]["health_check"] = {}
    assert not SCHEMA.is_valid(wrong)


def test_there_is_what_an_installation_needs() -> None:
    assert set(services()) == {"kafka", "clickhouse", "topics", "collector-1", "collector-2", "bridge", "worker", "judge"} | {
        "grafana"
    }
    assert services()["bridge"]["profiles"] == ["bridge"], "who has no Collector needs no bridge"
    assert services()["worker"]["deploy"]["replicas"] == 2


def test_every_image_and_plugin_is_pinned_by_version() -> None:
    for name, service in services().items():
        assert re.fullmatch(r"[a-z/-]+:\d+(\.\d+){2,3}", service["image"]), f"{name}: {service['image']}"
    assert re.fullmatch(r"[a-z-]+@\d+\.\d+\.\d+", services()["grafana"]["environment"]["GF_PLUGINS_PREINSTALL_SYNC"])


def test_our_image_carries_the_product_s_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert {service["image"] for service in ours().values()} == {f"tracegrade:{version}"}
    assert f"tracegrade:{version}" in (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", LONG_RUNNING)
def test_what_runs_for_long_is_watched_and_comes_back(name: str) -> None:
    service = services()[name]
    assert {"test", "interval", "timeout", "retries", "start_period"} <= service["healthcheck"].keys()
    assert service["healthcheck"]["test"][0] == "CMD"
    assert service["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", services())
def test_everything_is_bounded(name: str) -> None:
    service = services()[name]
    assert {"cpus", "memory"} <= service["deploy"]["resources"]["limits"].keys()
    assert {"max-size", "max-file"} <= service["logging"]["options"].keys()


@pytest.mark.parametrize("name", ours())
def test_our_own_processes_have_no_rights_and_nothing_to_write(name: str) -> None:
    service = ours()[name]
    assert (service["read_only"], service["cap_drop"], service["security_opt"]) == (True, ["ALL"], ["no-new-privileges:true"])


@pytest.mark.parametrize("name", services())
def test_a_service_waits_for_what_it_needs(name: str) -> None:
    for needed, how in services()[name].get("depends_on", {}).items():
        expected = "service_completed_successfully" if needed in ONE_SHOT else "service_healthy"
        assert how == {"condition": expected}, f"{name} waits for {needed}"


def test_topics_are_there_before_anybody_uses_them() -> None:
    for name in ("collector-1", "collector-2", "bridge", "worker"):
        assert "topics" in services()[name]["depends_on"]
    assert "kafka" in services()["topics"]["depends_on"]
    assert "clickhouse" in services()["worker"]["depends_on"]


def test_data_lies_in_named_volumes_and_files_of_the_tree_are_only_read() -> None:
    named = set()
    for name, service in services().items():
        for source, target, *mode in (volume.split(":") for volume in service.get("volumes", [])):
            if source.startswith("./"):
                assert (ROOT / source).exists(), f"{name} mounts {source}, which is not there"
                assert mode == ["ro"], f"{name} could write {source} at {target}"
            else:
                named.add(source)
    assert named == set(composition(filled_in())["volumes"]) == {"kafka-data", "clickhouse-data", "grafana-data"}


def test_collectors_and_grafana_are_published_on_one_address_and_nothing_else_is() -> None:
    published = {name: service["ports"] for name, service in services().items() if "ports" in service}
    assert published == {
        "collector-1": ["127.0.0.1:4317:4317", "127.0.0.1:4318:4318"],
        "collector-2": ["127.0.0.1:4327:4317", "127.0.0.1:4328:4318"],
        "grafana": ["127.0.0.1:3000:3000"],
    }
    elsewhere = services(filled_in() | {"TRACEGRADE_ADDRESS": "0.0.0.0"})  # noqa: S104 - an address that is written, and not listened on
    assert all(port.startswith("0.0.0.0:") for service in elsewhere.values() for port in service.get("ports", []))


def test_kafka_and_clickhouse_are_reached_from_inside_only() -> None:
    assert composition(filled_in())["networks"]["inside"] == {"internal": True}
    assert [services()[name]["networks"] for name in ("kafka", "clickhouse")] == [["inside"], ["inside"]]


def test_the_example_names_exactly_the_variables_that_the_file_uses() -> None:
    assert set(example()) == {reference.name for reference in references()}


def test_every_variable_is_explained_above_it() -> None:
    blocks = EXAMPLE.read_text(encoding="utf-8").strip().split("\n\n")[1:]
    assert [block.splitlines()[-1].split("=")[0] for block in blocks] == list(example())
    assert all(block.splitlines()[0].startswith("# ") for block in blocks)


def test_what_is_missing_is_said_with_what_to_do() -> None:
    required = {reference.name for reference in references() if reference.operator == "?"}
    assert required == set(example()) - {"TRACEGRADE_ADDRESS"}
    for name in required:
        with pytest.raises(MissingVariableError, match=f"write {name} into .env, .+"):
            composition(filled_in() | {name: ""})


def test_no_password_is_written_anywhere() -> None:
    """The example has them empty; the one key that it fills is for a judge that asks for none."""
    assert {name: value for name, value in example().items() if value} == {
        "JUDGE_API_KEY": "scripted",
        "TRACEGRADE_ADDRESS": "127.0.0.1",
    }
    assert all(reference.operator == "?" for reference in references() if SECRET.search(reference.name))
    written = {
        line.strip()
        for line in FILE.read_text(encoding="utf-8").splitlines()
        if re.match(r"\s+\w*(?:PASSWORD|KEY|SECRET|TOKEN)\w*:", line) and not re.search(r": \$\{\w+:\?[^}]+\}$", line)
    }
    assert written == set()
    datasource = (ROOT / "deploy" / "grafana" / "provisioning" / "datasources" / "clickhouse.yaml").read_text(encoding="utf-8")
    assert re.findall(r"password: (.+)", datasource) == ["$GRAFANA_CLICKHOUSE_PASSWORD"]


@pytest.mark.parametrize("name", ours())
def test_every_command_is_one_that_the_product_has(name: str) -> None:
    words: list[str] = ours()[name]["command"]
    assert CliRunner().invoke(app, [*words, "--help"]).exit_code == 0
    command: Any = get_command(app)
    rest = list(words)
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    assert command.make_context(command.name, rest).command is command


@pytest.mark.parametrize("name", NOT_OURS)
def test_others_images_start_with_their_own_command(name: str) -> None:
    assert not {"command", "entrypoint"} & services()[name].keys()
