"""Application: a Faust app as this product needs one. No tables, no windows, no topics of its own, no web server."""

import os
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Final

import faust
from faust.types.auth import SASLMechanism
from mode import CrashingSupervisor

from pipeline.config.kafka import KafkaSettings
from pipeline.errors import ConfigurationError
from pipeline.model.time import SECOND
from pipeline.model.topology import Node
from pipeline.runtime.faust.transport import consume_in_order

BUFFER: Final = 32
"""Records that a stream buffers: they are large (feasibility 1.5)."""
COMMIT_EVERY: Final = 1.0
"""Seconds between commits of what was acknowledged."""
LARGEST_FETCH: Final = 4 * 1024 * 1024
"""Bytes of a partition that one fetch takes; a larger record is fetched alone."""


def group_of(node: Node) -> str:
    """Return the consumer group of a stage: one for each."""
    return f"tracegrade.{node.name}"


def application(node: Node, settings: KafkaSettings, environment: Mapping[str, str], datadir: str) -> faust.App:
    """Return the app of a stage. It can be started once."""
    session = settings.session_timeout / SECOND
    app = faust.App(
        group_of(node),
        broker=[f"kafka://{address}" for address in settings.brokers],
        broker_client_id=f"{group_of(node)}@{socket.gethostname()}:{os.getpid()}",
        broker_credentials=_credentials(settings, environment),
        broker_session_timeout=session,
        broker_heartbeat_interval=session / 5,
        broker_request_timeout=max(60.0, 2 * session),
        broker_commit_interval=COMMIT_EVERY,
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=LARGEST_FETCH,
        agent_supervisor=CrashingSupervisor,
        stream_buffer_maxsize=BUFFER,
        stream_wait_empty=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        autodiscover=False,
        datadir=datadir,
        store="memory://",
    )
    consume_in_order(app)
    return app


def _credentials(settings: KafkaSettings, environment: Mapping[str, str]) -> Any:
    if settings.protocol == "plaintext":
        return None
    context = ssl.create_default_context(cafile=settings.ca_file) if settings.protocol.endswith("ssl") else None
    if settings.protocol == "ssl":
        return faust.SSLCredentials(context=context)
    password = environment.get(settings.password_env or "")
    if password is None:
        raise ConfigurationError(f"kafka.password_env names {settings.password_env}, which is not set in the environment")
    return faust.SASLCredentials(
        username=settings.username, password=password, ssl_context=context, mechanism=SASLMechanism(settings.mechanism)
    )
