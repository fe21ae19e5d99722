"""deploy/otel-collector.yaml: the settings on which its promise rests. That they keep it is shown by the real Collector, in ``make real``."""

from typing import Any, Final

from ruamel.yaml import YAML
from unit.deploy.composition import ROOT

FILE: Final = ROOT / "deploy" / "otel-collector.yaml"


def exporter() -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(FILE.read_text(encoding="utf-8"))["exporters"]["kafka"]
    return found


def test_a_sender_is_answered_when_the_brokers_have_it_and_not_before() -> None:
    kafka = exporter()
    assert kafka["sending_queue"]["wait_for_result"] is True
    assert kafka["retry_on_failure"] == {"enabled": False}
    assert kafka["producer"]["required_acks"] == "all"
    assert "storage" not in kafka["sending_queue"], "a queue on disk answers at once"
    pipeline = YAML(typ="safe", pure=True).load(FILE.read_text(encoding="utf-8"))["service"]["pipelines"]["traces"]
    assert pipeline == {"receivers": ["otlp"], "processors": [], "exporters": ["kafka"]}


def test_what_is_split_fits_into_a_record() -> None:
    kafka = exporter()
    split, record = kafka["sending_queue"]["batch"]["max_size"], kafka["producer"]["max_message_bytes"]
    assert (split, record) == ("${env:KAFKA_SPLIT_BYTES:-900000}", "${env:KAFKA_MESSAGE_BYTES:-1000000}")
    assert kafka["sending_queue"]["batch"]["sizer"] == "bytes"


def test_every_setting_says_why() -> None:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    for name in ("wait_for_result", "retry_on_failure", "required_acks", "max_message_bytes", "max_size", "processors"):
        (at,) = [number for number, line in enumerate(lines) if line.strip().startswith(f"{name}:")]
        assert any(line.strip().startswith("#") for line in lines[at - 6 : at]), f"{name} has no comment"
