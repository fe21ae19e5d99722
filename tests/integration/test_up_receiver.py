"""The receiver of a running ``tracegrade up``: encrypted, with hashed keys, full disks, and stopped under load."""

import asyncio
import http.client
import signal
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import grpc
import pytest
import trustme
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from serving import PATIENCE_S, Up, an_up, eventually, get, tracegrade
from unit.otlp.wire_forms import request, wire_span

from collectors.otlp.keys import new_key
from collectors.otlp.traces import TRACES
from pipeline.config.store import StoreSettings
from sinks.clickhouse.store import Store

QUIET: Final = "assemble: {quiet_period: 300ms}\nagents: {default: {rubric: null}}\n"
PORTS: Final = "http_port: 0, grpc_port: 0"


def _configured(folder: Path, receiver: str = PORTS, store: str = "") -> Path:
    config = folder / "tracegrade.yaml"
    config.write_text(f"store: {{path: {folder / 'data'}{store}}}\nreceiver: {{{receiver}}}\n{QUIET}")
    return config


def _span() -> WireSpan:
    return wire_span(trace_id=uuid4().bytes, span_id=uuid4().bytes[:8], name="chat")


class Sender:
    """Sends span after span until nobody is there any more, and remembers what it was told."""

    def __init__(self, up: Up) -> None:
        self.acknowledged: list[str] = []
        self.answers: set[str] = set()
        self._up = up
        self._acknowledged = threading.Lock()

    def over_http(self) -> None:
        connection = http.client.HTTPConnection(self._up.http.removeprefix("http://"), timeout=PATIENCE_S)

        def send(body: bytes) -> str:
            connection.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"})
            answer = connection.getresponse()
            answer.read()
            return str(answer.status)

        with closing(connection):
            self._until_nobody_is_there(send, (OSError, http.client.HTTPException))

    def over_grpc(self) -> None:
        with grpc.insecure_channel(self._up.grpc) as channel:
            export = channel.unary_unary(f"/{TRACES.service}/Export", None, None)

            def send(body: bytes) -> str:
                try:
                    export(body, timeout=PATIENCE_S)
                except grpc.RpcError as error:
                    code = error.code().name
                    if self._up.process.poll() is not None:
                        raise OSError(code) from error
                    return str(code)
                return "200"

            self._until_nobody_is_there(send, (OSError,))

    def _until_nobody_is_there(self, send: Callable[[bytes], str], gone: tuple[type[Exception], ...]) -> None:
        while True:
            span = _span()
            try:
                answer = send(request(span).SerializeToString())
            except gone:
                return
            with self._acknowledged:
                self.answers.add(answer)
                if answer == "200":
                    self.acknowledged.append(span.trace_id.hex())


def test_a_stop_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """F20: requests in flight are finished or told to come back; nothing is accepted after; the process ends in time."""
    with an_up(_configured(tmp_path), tmp_path / "data") as up:
        sender = Sender(up)
        with ThreadPoolExecutor() as pool:
            ended = [pool.submit(one) for one in (sender.over_http, sender.over_grpc) * 3]
            eventually(lambda: len(sender.acknowledged) > 100)
            took = up.ends(signal.SIGTERM)
            for one in ended:
                one.result()
    assert up.process.returncode == 0
    assert took < 15
    assert sender.answers <= {"200", "503", "UNAVAILABLE", "CANCELLED"}
    stored = asyncio.run(_stored(tmp_path / "data", sender.acknowledged))
    assert set(sender.acknowledged) - stored == set()


async def _stored(data: Path, traces: list[str]) -> set[str]:
    store = Store.open(StoreSettings(path=data))
    try:
        loaded = await store.load([("default", trace) for trace in traces])
        return {trace for (_, trace), one in loaded.items() if one.spans}
    finally:
        await store.close()


def test_a_request_that_hangs_is_told_to_come_back_and_holds_up_no_stop(tmp_path: Path) -> None:
    with an_up(_configured(tmp_path), tmp_path / "data") as up:
        connection = http.client.HTTPConnection(up.http.removeprefix("http://"), timeout=PATIENCE_S)
        connection.putrequest("POST", "/v1/traces")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", "100")
        connection.endheaders(b'{"resource')
        assert get(f"{up.http}/healthz").status == 200
        time.sleep(0.2)  # until it is being read; if it is not, it is refused all the same
        stopping = threading.Thread(target=lambda: up.ends(signal.SIGTERM))
        stopping.start()
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Retry-After")) == (503, "1")
        answer.read()
        connection.close()
        stopping.join()
        assert up.process.returncode == 0


def test_without_space_on_the_disk_nothing_is_accepted_and_the_status_says_why(tmp_path: Path) -> None:
    with an_up(_configured(tmp_path, store=f", min_free: {2**60}"), tmp_path / "data") as up:
        ready = get(f"{up.http}/readyz")
        assert (ready.status, ready.json["ready"]) == (503, False)
        assert {name: check["ok"] for name, check in ready.json["checks"].items()} == {
            "store": True,
            "backlog": True,
            "disk": False,
        }
        assert get(f"{up.http}/healthz").status == 200
        connection = http.client.HTTPConnection(up.http.removeprefix("http://"), timeout=PATIENCE_S)
        connection.request("POST", "/v1/traces", request(_span()).SerializeToString(), {"Content-Type": "application/x-protobuf"})
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Retry-After")) == (503, "1")
        assert b"GiB free on the disk of the data folder" in answer.read()
        connection.close()


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.mark.parametrize("mutual", [False, True], ids=["TLS", "mTLS"])
def test_commands_ask_an_encrypted_up_with_hashed_keys(mutual: bool, tmp_path: Path, authority: trustme.CA) -> None:
    issued = authority.issue_cert("collector.example")
    (tmp_path / "server.pem").write_bytes(issued.cert_chain_pems[0].bytes())
    (tmp_path / "server.key").write_bytes(issued.private_key_pem.bytes())
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    key, digest = new_key()
    tls = "cert_file: server.pem, key_file: server.key" + (", client_ca_file: ca.pem" if mutual else "")
    config = _configured(tmp_path, f'{PORTS}, keys: {{default: ["{digest}"]}}, tls: {{{tls}}}')
    with an_up(config, tmp_path / "data") as up:
        assert up.http.startswith("https://127.0.0.1:")
        _send_encrypted(up, authority, issued if mutual else None, key)
        said = eventually(lambda: _scoreboard(config, key))
        assert said["accounting"]["received"] == 1
        without = tracegrade("scoreboard", "-c", config, environment={"TRACEGRADE_KEY": ""})
        assert without.code == 2
        assert "set TRACEGRADE_KEY to the key whose digest is written" in without.err
        assert up.ends(signal.SIGTERM) < 15


def _send_encrypted(up: Up, authority: trustme.CA, certificate: trustme.LeafCert | None, key: str) -> None:
    context = ssl.create_default_context()
    context.check_hostname = False
    authority.configure_trust(context)
    if certificate is not None:
        certificate.configure_cert(context)
    host, _, port = up.http.removeprefix("https://").rpartition(":")
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=PATIENCE_S)
    headers = {"Content-Type": "application/x-protobuf", "Authorization": f"Bearer {key}"}
    attributes: Any = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"}
    span = _span()
    for name, value in attributes.items():
        span.attributes.add(key=name).value.string_value = value
    connection.request("POST", "/v1/traces", request(span).SerializeToString(), headers)
    assert connection.getresponse().status == 200
    connection.close()


def _scoreboard(config: Path, key: str) -> Any:
    said = tracegrade("scoreboard", "--json", "-c", config, environment={"TRACEGRADE_KEY": key})
    assert said.code == 0, said.err
    return said.json if said.json["accounting"]["received"] else None


def test_a_missing_certificate_is_a_sentence(tmp_path: Path) -> None:
    config = _configured(tmp_path, f"{PORTS}, tls: {{cert_file: no.pem, key_file: no.key}}")
    said = tracegrade("up", "-c", config)
    assert said.code == 2
    assert f"receiver.tls.cert_file: {tmp_path / 'no.pem'} cannot be read: No such file or directory; name a PEM file" in said.err
    assert "Traceback" not in said.err


def test_a_new_key_and_what_to_write(tmp_path: Path) -> None:
    made = tracegrade("key", "shop", "--json").json
    config = _configured(tmp_path, f'keys: {{shop: ["{made["digest"]}"]}}')
    assert tracegrade("check", config).code == 0
    told = tracegrade("key", "shop")
    assert told.code == 0
    assert f'write:   receiver: {{keys: {{shop: ["{told.out.split("digest:")[1].split()[0]}"]}}}}' in told.out
