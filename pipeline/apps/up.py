"""Up: the embedded pipeline as a process. It ends on SIGTERM or SIGINT, after what was accepted is stored."""

import asyncio
import signal
from collections.abc import Mapping

import structlog

from pipeline.apps import served
from pipeline.apps.compose import Product
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError
from sinks.clickhouse.store import Store

log = structlog.get_logger(__name__)
WATCH = 0.5


async def run(settings: TracegradeSettings) -> int:
    """Serve until told to stop; 0 after a stop that was asked for, 1 when a part of the pipeline failed."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    store = await asyncio.to_thread(Store.open, settings.store)
    try:
        async with Product(settings, store) as product:
            where = settings.store.url or str(settings.store.path)
            log.info(
                "up",
                store=where,
                http=product.served.http_url,
                grpc=product.served.grpc_address,
                status_page=product.served.http_url,
            )
            if settings.store.url is None:
                served.announce(settings.store.path, product.served.http_url)
            code = await _until(stop, product)
        log.info("stopped")
    finally:
        if settings.store.url is None:
            served.withdraw(settings.store.path)
        await store.close()
    return code


async def _until(stop: asyncio.Event, product: Product) -> int:
    while not stop.is_set():
        if product.pipeline.failed is not None:
            log.error("a part of the pipeline failed", error=repr(product.pipeline.failed), exc_info=product.pipeline.failed)
            return 1
        try:
            await asyncio.wait_for(stop.wait(), WATCH)
        except TimeoutError:
            continue
    return 0


def key_of(settings: TracegradeSettings, environment: Mapping[str, str]) -> str:
    """Return a key of the project for asking a running ``up``; empty where it asks for none.

    Raises:
        ConfigurationError: keys are configured, and none is the project's.
    """
    keys = settings.receiver.keys
    if not keys:
        return ""
    for secret in keys.get(settings.project, ()):
        text = secret.get_secret_value()
        key = environment.get(text.removeprefix("env:"), "") if text.startswith("env:") else text
        if key:
            return key
    raise ConfigurationError(
        f"project {settings.project!r} has no key in receiver.keys that can be read here; set its environment variable or project to one that has"
    )
