"""Cluster: questions to the brokers, each with an end, and their refusals as the product's errors."""

import time
from collections.abc import Callable, Container, Mapping
from concurrent.futures import Future
from typing import Final, TypeVar, cast

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from collectors.kafka.client import client_options
from pipeline.config.kafka import KafkaSettings
from pipeline.errors import ConfigurationError, TemporaryError

PATIENCE_S: Final = 10.0
"""For each question; a broker in reach answers in milliseconds."""
REFUSALS: Final = frozenset(
    {
        "_AUTHENTICATION",
        "_SSL",
        "SASL_AUTHENTICATION_FAILED",
        "UNSUPPORTED_SASL_MECHANISM",
        "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
    }
)
"""Names of errors that only a person can change. (An underscore stands before what the client says, and not a broker.)"""

PASSING: Final = frozenset(
    {
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "UNKNOWN_TOPIC_OR_PART",
        "REQUEST_TIMED_OUT",
    }
)
"""Names of errors that are over in a moment: a broker, a group or a topic is new, or has just moved."""

T = TypeVar("T")


class Cluster:
    """The brokers of the settings, as an administrator sees them. Used by one thread at a time."""

    def __init__(self, settings: KafkaSettings, environment: Mapping[str, str]) -> None:
        """Connect to nothing yet.

        Raises:
            ConfigurationError: the password's environment variable is not set.
        """
        self._brokers = ", ".join(settings.brokers)
        self._replication = settings.replication
        self.seen_by = f" that {settings.username} may see" if settings.username else ""
        """What a broker does not show a user is, to them, not there."""
        self._heard: list[KafkaError] = []
        options = {**client_options(settings, environment), "error_cb": self._heard.append, "log_level": 0}
        self.client = AdminClient(options)

    def metadata(self) -> ClusterMetadata:
        """Return topics and partitions.

        Raises:
            ConfigurationError: the brokers refuse this user or this protocol.
            TemporaryError: none of them answers.
        """
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.client.list_topics(timeout=1)
            except KafkaException as error:
                self.client.poll(0.1)  # hands over what the connections heard: the question itself only ran out of time
                refused = next((one for one in self._heard if one.name() in REFUSALS), None)
                if refused is not None or time.monotonic() > until:
                    raise self.error(refused or (self._heard or [_cause(error)])[-1]) from error

    def answers(self, ask: Callable[[], Mapping[str, Future[T]]], missing: Container[int] = ()) -> dict[str, T]:
        """Ask, and again where a coordinator or leader was not ready; return the answers by name.

        Those that fail with one of the codes ``missing`` are left out.

        Raises:
            ConfigurationError: a person can change what is refused.
            TemporaryError: it may work later.
        """
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return _answered(ask(), missing)
            except KafkaException as error:
                if not self._passes(_cause(error)) or time.monotonic() > until:
                    raise self.error(_cause(error)) from error
            except TimeoutError as error:
                raise TemporaryError(f"the brokers of kafka.brokers ({self._brokers}) do not answer") from error
            time.sleep(0.1)

    def error(self, error: KafkaError) -> ConfigurationError | TemporaryError:
        """Return what a broker said as an error that says who acts."""
        said = f"{error.str()} ({error.name()})"
        if error.name() in REFUSALS:
            return ConfigurationError(
                f"the brokers ({self._brokers}) refuse: {said}; check protocol, mechanism, username, password_env and ca_file"
                " of kafka, and what this user may do on the cluster"
            )
        if error.code() < 0:
            return TemporaryError(f"the brokers of kafka.brokers ({self._brokers}) do not answer: {said}")
        if self._passes(error) or error.retriable():
            return TemporaryError(f"the brokers ({self._brokers}) are not ready: {said}")
        hint = "; write a smaller kafka.replication" if error.code() == KafkaError.INVALID_REPLICATION_FACTOR else ""
        return ConfigurationError(f"the brokers ({self._brokers}) refuse what is asked: {said}{hint}")

    def _passes(self, error: KafkaError) -> bool:
        """A cluster that answers has a broker for one copy: where it says that it has none, it has just started and none is unfenced."""
        return error.name() in PASSING or (error.code() == KafkaError.INVALID_REPLICATION_FACTOR and self._replication == 1)


def _answered(asked: Mapping[str, Future[T]], missing: Container[int]) -> dict[str, T]:
    answered = {}
    for name, future in asked.items():
        try:
            answered[name] = future.result(2 * PATIENCE_S)
        except KafkaException as error:
            if _cause(error).code() not in missing:
                raise
    return answered


def _cause(error: KafkaException) -> KafkaError:
    return cast("KafkaError", error.args[0])
