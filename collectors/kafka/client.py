"""What every Kafka client of this package is told: where the brokers are, how to be trusted by them, and where to log."""

import logging
from collections.abc import Mapping
from typing import Any

from pipeline.config.kafka import KafkaSettings
from pipeline.errors import ConfigurationError


def client_options(settings: KafkaSettings, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of librdkafka that the settings stand for. One of them is a secret: the dict is not to be shown.

    Raises:
        ConfigurationError: the password is not in the environment, or the certificates are not where the settings say.
    """
    options: dict[str, Any] = {
        "bootstrap.servers": ",".join(settings.brokers),
        "client.id": "tracegrade",
        "security.protocol": settings.protocol,
        # It would write to stderr past everything. These lines come when the client is polled, in the thread that does so.
        "logger": logging.getLogger("librdkafka"),
    }
    if settings.protocol.endswith("ssl") and settings.ca_file is not None:
        if not settings.ca_file.is_file():
            raise ConfigurationError(
                f"kafka.ca_file: there is no file {settings.ca_file}; write the path of a file of certificates in PEM"
            )
        options["ssl.ca.location"] = str(settings.ca_file)
    if settings.protocol.startswith("sasl"):
        variable = settings.password_env or ""
        password = environment.get(variable)
        if not password:
            raise ConfigurationError(
                f"kafka.password_env: the environment has no {variable}; set it to the password of {settings.username}"
            )
        options |= {"sasl.mechanism": settings.mechanism, "sasl.username": settings.username, "sasl.password": password}
    return options
