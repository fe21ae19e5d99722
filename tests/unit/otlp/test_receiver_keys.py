"""Keys decide projects, and strangers get in nowhere by default."""

from typing import Any

import pytest
from pydantic import ValidationError

from collectors.otlp.keys import UnauthenticatedError, keys_from
from pipeline.config.receiver import ReceiverSettings
from pipeline.errors import ConfigurationError


def _settings(**fields: Any) -> ReceiverSettings:
    return ReceiverSettings.model_validate(fields)


def test_the_defaults_are_loopback_the_ports_of_otlp_and_64_mebibytes() -> None:
    settings = ReceiverSettings()
    assert (settings.host, settings.grpc_port, settings.http_port, settings.max_body) == ("127.0.0.1", 4317, 4318, 67_108_864)
    assert keys_from(settings, {}).project(None) == "default"


@pytest.mark.parametrize("authorization", [None, "", "Bearer whatever", "Basic abc"])
def test_without_keys_everybody_on_this_machine_writes_to_the_project_of_the_settings(authorization: str | None) -> None:
    assert keys_from(_settings(project="mine"), {}).project(authorization) == "mine"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_a_loopback_address_needs_no_key(host: str) -> None:
    assert keys_from(_settings(host=host, project="mine"), {}).project(None) == "mine"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.com", ""])  # noqa: S104 - refusing it is the point
def test_any_other_address_without_a_key_is_refused_with_what_to_write(host: str) -> None:
    with pytest.raises(ConfigurationError, match=r"Write receiver\.keys: \{default: \[env:TRACEGRADE_KEY\]\}"):
        keys_from(_settings(host=host), {})


def test_any_address_will_do_with_a_key() -> None:
    assert keys_from(_settings(host="0.0.0.0", keys={"a": ["secret"]}), {}).project("Bearer secret") == "a"  # noqa: S104


@pytest.mark.parametrize("authorization", ["Bearer one", "bearer one", "BEARER  one ", " Bearer one"])
def test_the_key_decides_the_project(authorization: str) -> None:
    keys = keys_from(_settings(keys={"a": ["one", "two"], "b": ["three"]}), {})
    assert keys.project(authorization) == "a"
    assert keys.project("Bearer two") == "a"
    assert keys.project("Bearer three") == "b"


@pytest.mark.parametrize(
    "authorization", [None, "", "one", "Bearer", "Bearer ", "Bearer two", "Bearer ONE", "Basic one", "Bearer \udcff"]
)
def test_with_keys_nobody_else_gets_in(authorization: str | None) -> None:
    with pytest.raises(UnauthenticatedError) as refusal:
        keys_from(_settings(keys={"a": ["one"]}), {}).project(authorization)
    assert "one" not in str(refusal.value)


def test_a_key_is_read_from_the_environment() -> None:
    keys = keys_from(_settings(keys={"a": ["env:A_KEY"]}), {"A_KEY": "one\n"})
    assert keys.project("Bearer one") == "a"


@pytest.mark.parametrize("environment", [{}, {"A_KEY": ""}, {"A_KEY": "  "}], ids=str)
def test_a_key_that_the_environment_lacks_is_a_configuration_error(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"receiver\.keys\.a: the environment variable 'A_KEY' is not set"):
        keys_from(_settings(keys={"a": ["env:A_KEY"]}), environment)


def test_two_projects_cannot_share_a_key() -> None:
    with pytest.raises(ConfigurationError, match="give each project a key of its own"):
        keys_from(_settings(keys={"a": ["one"], "b": ["env:B_KEY"]}), {"B_KEY": "one"})


def test_keys_do_not_show_when_settings_are_printed() -> None:
    settings = _settings(keys={"a": ["verysecret"]})
    assert "verysecret" not in f"{settings!r} {settings} {settings.model_dump_json()}"


@pytest.mark.parametrize(
    "fields",
    [
        {"keys": {"a": []}},
        {"keys": {"a": [""]}},
        {"keys": {"": ["k"]}},
        {"grpc_port": 70_000},
        {"max_body": 0},
        {"project": ""},
        {"unknown": 1},
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        _settings(**fields)
