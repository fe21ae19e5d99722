"""Encrypted ports, and clients with certificates (S2)."""

import asyncio
import datetime as dt
import ssl
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import grpc
import pytest
import trustme
from contract.conformance import Told
from contract.product import Product, over_grpc, product

from collectors.otlp.tls import certificates_from
from pipeline.config.receiver import TlsSettings
from pipeline.errors import ConfigurationError

JSON: Final = {"Content-Type": "application/json"}


class Files(NamedTuple):
    """Certificates as files, and authorities as clients know them."""

    server: dict[str, Path]
    authority: trustme.CA
    clients: trustme.CA
    folder: Path


@pytest.fixture
def files(tmp_path: Path) -> Files:
    authority, clients = trustme.CA(), trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    paths = {"cert_file": tmp_path / "server.pem", "key_file": tmp_path / "server.key"}
    paths["cert_file"].write_bytes(b"".join(one.bytes() for one in issued.cert_chain_pems))
    paths["key_file"].write_bytes(issued.private_key_pem.bytes())
    clients.cert_pem.write_to_path(tmp_path / "clients.pem")
    return Files(paths, authority, clients, tmp_path)


def _client(files: Files, certificate: trustme.LeafCert | None, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    files.authority.configure_trust(context)
    if certificate is not None:
        certificate.configure_cert(context)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


async def _https(one: Product, context: ssl.SSLContext | bool, scheme: str = "https") -> str:
    url = f"{scheme}://localhost:{one.served.http_url.rpartition(':')[2]}/v1/traces"
    try:
        async with aiohttp.ClientSession() as client, client.post(url, data=b"{}", headers=JSON, ssl=context) as response:
            return str(response.status)
    except (aiohttp.ClientError, ssl.SSLError, ConnectionError) as error:
        return f"refused: {type(error).__name__}"


def _grpc_credentials(files: Files, certificate: trustme.LeafCert | None) -> Any:
    root = files.authority.cert_pem.bytes()
    if certificate is None:
        return grpc.ssl_channel_credentials(root)
    chain = b"".join(one.bytes() for one in certificate.cert_chain_pems)
    return grpc.ssl_channel_credentials(root, certificate.private_key_pem.bytes(), chain)


EXPIRED = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


@pytest.mark.filterwarnings("default::ResourceWarning", "ignore:.*deprecated:DeprecationWarning")
class TestCertificates:
    """S2: no plaintext, no old TLS, and no client whom the authority does not know."""

    async def test_both_ports_are_encrypted_and_plaintext_gets_nowhere(self, files: Files, told: Told) -> None:
        async with product(tls=files.server) as one:
            assert one.served.http_url.startswith("https://127.0.0.1:")
            assert await _https(one, _client(files, None)) == "200"
            assert await over_grpc(one.served, b"", credentials=_grpc_credentials(files, None)) == "OK"
            assert (await _https(one, True, "http")).startswith("refused")
            assert await over_grpc(one.served, b"") == "UNAVAILABLE"
            told("S2", "plaintext to an encrypted port", "http", "refused")
            told("S2", "plaintext to an encrypted port", "grpc", "UNAVAILABLE")

    async def test_an_authority_that_the_client_does_not_know_is_refused_by_the_client(self, files: Files) -> None:
        async with product(tls=files.server) as one:
            stranger = files._replace(authority=trustme.CA())
            assert (await _https(one, _client(stranger, None))).startswith("refused")
            assert await over_grpc(one.served, b"", credentials=_grpc_credentials(stranger, None)) == "UNAVAILABLE"

    @pytest.mark.parametrize("port", ["http", "grpc"])
    async def test_tls_1_1_is_refused_by_the_server(self, port: str, files: Files, told: Told) -> None:
        async with product(tls=files.server) as one:
            number = int((one.served.http_url if port == "http" else one.served.grpc_address).rpartition(":")[2])
            assert await self._handshake(number, _client(files, None, ssl.TLSVersion.TLSv1_2)) == "TLSv1.2"
            assert await self._handshake(number, _client(files, None, ssl.TLSVersion.TLSv1_1)) == "refused"
            told("S2", "TLS 1.1", port, "refused")

    def test_nothing_older_is_offered_whatever_the_system_allows(self, files: Files) -> None:
        certificates = certificates_from(TlsSettings.model_validate(files.server))
        assert certificates is not None
        assert certificates.context.minimum_version == ssl.TLSVersion.TLSv1_2

    async def _handshake(self, port: int, context: ssl.SSLContext) -> str:
        context.set_alpn_protocols(["h2"])
        context.set_ciphers("ALL:@SECLEVEL=0")
        try:
            _, writer = await asyncio.open_connection("localhost", port, ssl=context, server_hostname="localhost")
        except (ssl.SSLError, ConnectionError):
            return "refused"
        version: str = writer.get_extra_info("ssl_object").version()
        writer.close()
        return version

    @pytest.mark.parametrize("case", ["known", "none", "of another authority", "expired"])
    async def test_only_clients_of_the_authority_get_in(self, case: str, files: Files, told: Told) -> None:
        issue: dict[str, Callable[[], trustme.LeafCert | None]] = {
            "known": lambda: files.clients.issue_cert("agent.example"),
            "none": lambda: None,
            "of another authority": lambda: trustme.CA().issue_cert("agent.example"),
            "expired": lambda: files.clients.issue_cert("agent.example", not_before=EXPIRED, not_after=EXPIRED + dt.timedelta(1)),
        }
        certificate = issue[case]()
        async with product(tls=files.server | {"client_ca_file": files.folder / "clients.pem"}) as one:
            encrypted = await _https(one, _client(files, certificate))
            called = await over_grpc(one.served, b"", credentials=_grpc_credentials(files, certificate))
        assert (encrypted == "200", called == "OK") == (case == "known", case == "known")
        assert case == "known" or (encrypted.startswith("refused") and called == "UNAVAILABLE")
        told("S2", f"client certificate: {case}", "http", encrypted.partition(":")[0])
        told("S2", f"client certificate: {case}", "grpc", called)

    async def test_a_probe_without_a_certificate_has_a_port_of_its_own_with_nothing_else_on_it(
        self, files: Files, told: Told
    ) -> None:
        mutual = files.server | {"client_ca_file": files.folder / "clients.pem"}
        async with product(tls=mutual, health_port=0, keys={"shop": ["k"]}) as one, aiohttp.ClientSession() as client:
            statuses = {}
            for path in ("/healthz", "/readyz", "/", "/v1/traces", "/api/runs"):
                async with client.post(f"{one.served.health_url}{path}") as answer:
                    statuses[f"POST {path}"] = answer.status
                async with client.get(f"{one.served.health_url}{path}") as answer:
                    statuses[path] = answer.status
        assert {path for path, status in statuses.items() if status == HTTPStatus.OK} == {"/healthz", "/readyz"}
        assert set(statuses.values()) <= {200, 404, 405}
        told("S2", "health without a certificate, on its own port", "http", "200")


@pytest.mark.parametrize(
    ("changes", "told_so"),
    [
        (
            {"cert_file": "missing.pem"},
            r"receiver\.tls\.cert_file: .*missing\.pem cannot be read: No such file or directory; name a PEM",
        ),
        ({"key_file": "missing.key"}, r"receiver\.tls\.key_file: .*missing\.key cannot be read"),
        ({"client_ca_file": "text.txt"}, r"receiver\.tls\.client_ca_file: .*text\.txt is not a PEM file"),
        ({"key_file": "other.key"}, r"receiver\.tls: .*other\.key is not the key of .*server\.pem"),
        ({"client_ca_file": "server.key"}, r"receiver\.tls\.client_ca_file: .*server\.key holds no certificate"),
        ({"key_file": "locked.key"}, r"receiver\.tls: .*locked\.key is not the key of .*without a password"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_files_that_are_not_what_they_should_be_refuse_to_start(changes: dict[str, str], told_so: str, files: Files) -> None:
    (files.folder / "text.txt").write_text("certificate")
    other = trustme.CA().issue_cert("localhost").private_key_pem.bytes()
    (files.folder / "other.key").write_bytes(other)
    (files.folder / "locked.key").write_text(
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: DES-EDE3-CBC,0123456789ABCDEF\n\nAAAA\n-----END RSA PRIVATE KEY-----\n"
    )
    settings = TlsSettings.model_validate(files.server | {key: files.folder / name for key, name in changes.items()})
    with pytest.raises(ConfigurationError, match=told_so):
        certificates_from(settings)
