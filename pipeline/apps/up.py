"""Up: the embedded pipeline as a process. It ends on SIGTERM or SIGINT, after what was accepted is stored."""

import asyncio
import signal
from contextlib import ExitStack

import structlog

from pipeline.apps import served
from pipeline.apps.compose import Product
from pipeline.config.tracegrade import TracegradeSettings
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
            with ExitStack() as stack:
                if settings.store.url is None:
                    stack.enter_context(served.announced(settings.store.path, product.served.http_url))
                code = await _until(stop, product)
        log.info("stopped")
    finally:
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
