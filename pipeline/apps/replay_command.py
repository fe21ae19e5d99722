"""``tracegrade replay``: recorded traces through an OTLP endpoint, as if they had just been exported."""
# ruff: noqa: PLC0415 - a command imports what it needs

import socket
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import msgspec

from pipeline.apps.address import Address, address_of
from pipeline.apps.commands import print_json, print_line, quiet_exporters
from pipeline.errors import ConfigurationError

if TYPE_CHECKING:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    from collectors.replay import Protocol, SendReport

E = TypeVar("E", bound=StrEnum)


def replay(
    files: list[Path], config: Path | None, endpoint: str, protocol: str, times: str, key: str, *, same_ids: bool, json: bool
) -> int:
    """Send recorded traces, showing progress."""
    from collectors.replay import Protocol, Times, read, retime
    from pipeline.runtime.clock import SystemClock

    quiet_exporters()
    spoken = _choice(Protocol, "--protocol", protocol) if protocol else None
    moved = _choice(Times, "--times", times)
    recordings = list(read(files))
    address = address_of(config, endpoint, key, grpc=spoken is not Protocol.HTTP)
    _look_for(address.endpoint)
    total = sum(recording.spans for recording in recordings)
    requests = retime(recordings, moved, SystemClock().now(), same_ids=same_ids)
    report = _sent(requests, address, spoken if endpoint else spoken or Protocol.GRPC, total)
    skipped = {str(recording.path): recording.skipped for recording in recordings if recording.skipped}
    if json:
        print_json({**msgspec.to_builtins(report), "total": total, "skipped": skipped})
        return report.exit_code
    for path, why in skipped.items():
        print_line(f"skipped {path}: {why}")
    rest = "; the rest was not tried, after several failures in a row" if report.gave_up else ""
    counted = f"{report.rejected} rejected, {report.failed} failed{rest}"
    print_line(f"sent {report.sent} of {total} spans to {address.endpoint}; {counted}")
    for message in report.messages:
        print_line(f"  {message}")
    return report.exit_code


def _sent(
    requests: "Iterator[ExportTraceServiceRequest]", address: Address, spoken: "Protocol | None", total: int
) -> "SendReport":
    from rich.progress import Progress

    from collectors.replay import send
    from pipeline.apps.show import console

    terminal = console(to_stderr=True)
    with Progress(transient=True, console=terminal, disable=not terminal.is_terminal) as progress:
        task = progress.add_task("sending spans", total=total)
        return send(
            requests,
            address.endpoint,
            spoken,
            address.key,
            lambda done, _: progress.update(task, completed=done),
            total=total,
        )


def _look_for(endpoint: str) -> None:
    """Say at once what an exporter would find out after half a minute of retries: that nothing listens there."""
    address = urlsplit(endpoint if "://" in endpoint else f"//{endpoint}")
    try:
        if address.hostname and address.port:
            socket.create_connection((address.hostname, address.port), timeout=10).close()
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{endpoint} does not answer ({error}); start tracegrade up, or name another --endpoint"
        ) from error


def _choice(kind: type[E], option: str, text: str) -> E:
    try:
        return kind(text)
    except ValueError:
        raise ConfigurationError(f"{option} is {text!r}; write one of {', '.join(kind)}") from None
