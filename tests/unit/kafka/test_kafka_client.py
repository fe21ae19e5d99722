"""What clients are told of the brokers."""

import logging
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from collectors.kafka.client import client_options
from collectors.kafka.producer import KafkaProducer
from pipeline.config.kafka import KafkaSettings
from pipeline.errors import ConfigurationError

SASL: dict[str, Any] = {"username": "grader", "password_env": "KAFKA_PASSWORD"}


def _settings(**fields: Any) -> KafkaSettings:
    return KafkaSettings(**{"brokers": ("one:9092", "[::1]:9093"), **fields})


def test_a_cluster_without_security_needs_only_its_brokers() -> None:
    assert client_options(_settings(), {}) == {
        "bootstrap.servers": "one:9092,[::1]:9093",
        "client.id": "tracegrade",
        "security.protocol": "plaintext",
        "logger": logging.getLogger("librdkafka"),
    }


def test_a_user_has_the_password_of_the_environment(tmp_path: Path) -> None:
    certificates = tmp_path / "ca.pem"
    certificates.touch()
    options = client_options(_settings(protocol="sasl_ssl", ca_file=certificates, **SASL), {"KAFKA_PASSWORD": "s3cret"})
    assert options["security.protocol"] == "sasl_ssl"
    assert options["ssl.ca.location"] == str(certificates)
    assert [options[f"sasl.{name}"] for name in ("mechanism", "username", "password")] == ["SCRAM-SHA-512", "grader", "s3cret"]


def test_certificates_are_of_no_use_without_tls(tmp_path: Path) -> None:
    assert "ssl.ca.location" not in client_options(_settings(ca_file=tmp_path / "none.pem"), {})


@pytest.mark.parametrize("environment", [{}, {"KAFKA_PASSWORD": ""}])
def test_a_password_that_is_not_in_the_environment_is_asked_for(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="the environment has no KAFKA_PASSWORD; set it to the password of grader"):
        client_options(_settings(protocol="sasl_plaintext", **SASL), environment)


def test_certificates_that_are_not_there_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no file .*none.pem"):
        client_options(_settings(protocol="ssl", ca_file=tmp_path / "none.pem"), {})


async def test_certificates_that_are_none_are_a_mistake_of_a_person(tmp_path: Path) -> None:
    certificates = tmp_path / "ca.pem"
    certificates.write_text("no certificate")
    with pytest.raises(ConfigurationError, match="these settings do not work together"):
        async with KafkaProducer(_settings(protocol="ssl", ca_file=certificates), {}):
            pass


@pytest.mark.parametrize("protocol", ["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_librdkafka_knows_these_options(protocol: str, mechanism: str) -> None:
    user = SASL if protocol.startswith("sasl") else {}
    options = client_options(
        _settings(brokers=("127.0.0.1:1",), protocol=protocol, mechanism=mechanism, **user), {"KAFKA_PASSWORD": "x"}
    )
    assert isinstance(Producer(options), Producer)
    assert isinstance(AdminClient(options), AdminClient)


async def test_what_librdkafka_says_is_logged_and_not_written_past_everything(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    producer = Producer(client_options(_settings(brokers=("127.0.0.1:1",)), {}))
    while not caplog.records:
        producer.poll(1)
    assert {record.name for record in caplog.records} == {"librdkafka"}
    assert "127.0.0.1:1" in caplog.text
    assert capfd.readouterr().err == ""
