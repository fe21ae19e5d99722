"""A real Kafka broker for tests: Kafka 4.4 in KRaft mode, from Maven Central's jars, on loopback and a temporary folder.

Jars are fetched once for each `tests/kafka/pom.xml` into the user's cache folder (43 MB). A broker answers about 3 s after its start, and
takes 0.2 GB. Run as a program it serves until Ctrl-C; the first line it prints is its address.

The fixture ``broker`` is one broker for all tests of a session. The product's topics have fixed names, so a test that counts what is in
them takes ``empty_broker``: the same broker, after every topic and group in it was deleted (0.1 s, where another broker takes 3 s).
Tests that kill their broker start their own: ``with Broker() as broker``; it answers about 5 s after ``kill`` and ``start``.
"""

import argparse
import base64
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from kafka_jars import jars, java
from machine import UnavailableError, any_free_port, end, tail_of, until_ready

HERE: Final = Path(__file__).parent / "kafka"
START_SECONDS: Final = 90.0
CLEAR_SECONDS: Final = 30.0
FIRST_PORT: Final = 10_000

WATCHDOG: Final = 'read -r _; kill -9 "$1"; rm -rf "$2"'
"""Reads from its parent, which never writes: the end of the pipe is the end of the parent, however it died."""


class Broker:
    """One node, broker and controller. Its ports and data last until :meth:`close`, over any number of restarts."""

    def __init__(self, port: int = 0) -> None:
        """Fetch the jars where they are missing; nothing is started. ``port`` 0 is any free one."""
        self._java = java()
        self._jars = jars()
        self._folder = Path(tempfile.mkdtemp(prefix="tracegrade-kafka-"))
        self.port = port or _free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._controller = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the running broker, for signals that have no method here."""
        if self._process is None:
            raise RuntimeError("the broker is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it runs: a broker may end by itself, as when its disk is full."""
        return self._process is not None and self._process.poll() is None

    @property
    def data(self) -> Path:
        """The folder that holds its records."""
        return self._folder / "data"

    @property
    def log(self) -> Path:
        """What the broker wrote, over all its starts."""
        return self._folder / "broker.log"

    def start(self) -> None:
        """Start, and return when clients can produce: the broker is in its own metadata, and each partition has a leader."""
        if self._process is not None:
            raise RuntimeError("the broker is running")
        properties = self._folder / "server.properties"
        if not properties.exists():
            properties.write_text(self._properties(), encoding="utf-8")
            self._run("kafka.tools.StorageTool", "format", "-t", _cluster_id(), "-c", str(properties))
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command("kafka.Kafka", str(properties)),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._watchdog = subprocess.Popen(
            ["sh", "-c", WATCHDOG, "watchdog", str(self.pid), str(self._folder)], stdin=subprocess.PIPE, start_new_session=True
        )
        admin = self.admin()
        try:
            until_ready("the broker", self._process, lambda: _serves(admin), self.tail, START_SECONDS)
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """End the broker with SIGKILL, as a power cut would; ports and data stay."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the broker with SIGTERM, so that it closes its files; ports and data stay."""
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Start again on the same ports and data, stopping it first where it runs."""
        self.stop()
        self.start()

    def wait(self) -> int:
        """Wait until the broker ends by itself, and return its exit code."""
        if self._process is None:
            raise RuntimeError("the broker is not running")
        return self._process.wait()

    def clear(self) -> None:
        """Delete every topic and consumer group, and return when they are gone: killed members' sessions may have to end first."""
        admin = self.admin()
        until = time.monotonic() + CLEAR_SECONDS
        while left := _left_of_groups(admin) | _left_of_topics(admin):
            if time.monotonic() > until:
                raise TimeoutError(f"still there after {CLEAR_SECONDS:.0f} s: {', '.join(sorted(left))}")
            time.sleep(0.02)

    def admin(self) -> AdminClient:
        """Return a client that says nothing while the broker is down. Keep it while its answers are waited for: they end with it."""
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0, "reconnect.backoff.max.ms": 200})

    def close(self) -> None:
        """End the broker and throw its data away."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def tail(self, lines: int = 30) -> str:
        """Return the end of what the broker wrote."""
        return tail_of(self.log, lines)

    def _end(self, how: signal.Signals) -> None:
        watchdog, process = self._watchdog, self._process
        self._watchdog = self._process = None
        if watchdog is not None:
            watchdog.kill()
            watchdog.wait()
            if watchdog.stdin is not None:
                watchdog.stdin.close()
        if process is not None:
            end(process, how)

    def _command(self, main: str, *arguments: str) -> list[str]:
        options = ["-Xms256m", "-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
        logs = f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"
        return [self._java, *options, logs, "-cp", f"{self._jars}/*", main, *arguments]

    def _run(self, main: str, *arguments: str) -> None:
        done = subprocess.run(self._command(main, *arguments), capture_output=True, text=True, timeout=START_SECONDS, check=False)
        if done.returncode:
            raise RuntimeError(f"{main} failed:\n{done.stdout}{done.stderr}")

    def _properties(self) -> str:
        client, controller = f"PLAINTEXT://{self.address}", f"CONTROLLER://127.0.0.1:{self._controller}"
        own = {
            "listeners": f"{client},{controller}",
            "advertised.listeners": client,
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "log.dirs": str(self.data),
        }
        return (HERE / "server.properties").read_text(encoding="utf-8") + "".join(f"\n{key}={own[key]}" for key in own)


def _free_port() -> int:
    """Return a free port that no client is given by chance while the broker that owns it is down."""
    handed_out = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first = int(handed_out.read_text(encoding="ascii").split()[0]) if handed_out.exists() else 0
    for _ in range(100 if first > 2 * FIRST_PORT else 0):
        port = FIRST_PORT + secrets.randbelow(first - FIRST_PORT)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    return any_free_port()


def _cluster_id() -> str:
    return "t" + base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")[1:]


def _left_of_groups(admin: AdminClient) -> set[str]:
    """Delete the groups without members; return those that were there."""
    groups = [group.group_id for group in admin.list_consumer_groups(request_timeout=10).result().valid]
    for done in (admin.delete_consumer_groups(groups, request_timeout=10) if groups else {}).values():
        try:
            done.result()
        except KafkaException as error:
            if _code(error) not in (KafkaError.NON_EMPTY_GROUP, KafkaError.GROUP_ID_NOT_FOUND):
                raise
    return set(groups)


def _left_of_topics(admin: AdminClient) -> set[str]:
    """Delete the topics; return those that were there."""
    topics = [name for name in admin.list_topics(timeout=10).topics if not name.startswith("__")]
    for done in (admin.delete_topics(topics, operation_timeout=10, request_timeout=15) if topics else {}).values():
        try:
            done.result()
        except KafkaException as error:
            if _code(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    return set(topics)


def _code(error: KafkaException) -> int | None:
    (why,) = error.args
    return why.code() if isinstance(why, KafkaError) else None


def _serves(admin: AdminClient) -> bool:
    try:
        metadata = admin.list_topics(timeout=1)
    except KafkaException:
        return False
    leaders = [part.leader for topic in metadata.topics.values() for part in topic.partitions.values()]
    return bool(metadata.brokers) and all(leader >= 0 for leader in leaders)


def main() -> int:
    """Serve until Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(description="Run a Kafka broker on loopback, on a temporary folder, until Ctrl-C.")
    parser.add_argument("--port", type=int, default=0, help="port on loopback; any free one by default")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Broker(asked.port) as broker:
            sys.stdout.write(f"{broker.address}\n")
            sys.stdout.flush()
            code = broker.wait()
            sys.stderr.write(f"the broker ended with {code}; the end of its log:\n{broker.tail()}\n")
            return 1
    except KeyboardInterrupt:
        return 0
    except (UnavailableError, RuntimeError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
