"""Up: the embedded pipeline as a process. It ends on SIGTERM or SIGINT, after what was accepted is stored."""

import asyncio
from contextlib import AsyncExitStack, ExitStack

import structlog

from pipeline.apps import served
from pipeline.apps.admin import admit
from pipeline.apps.compose import Product
from pipeline.apps.letters import Letters
from pipeline.apps.logs import mask_too
from pipeline.apps.process import asked_to_stop, collect_less_often, until_told
from pipeline.config.tracegrade import TracegradeSettings
from sinks.clickhouse.store import Store

log = structlog.get_logger(__name__)


async def run(settings: TracegradeSettings) -> int:
    """Serve until told to stop; 0 after a stop that was asked for, 1 when a part of the pipeline failed."""
    mask_too(settings.redaction.rules)
    stop = asked_to_stop()
    store = await asyncio.to_thread(Store.open, settings.store)
    try:
        async with Product(settings, store) as product, AsyncExitStack() as doors:
            await store.retain(settings.retention)
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
                    admin = await admit(Letters(store.letters, None, product.replayer), doors)
                    stack.enter_context(served.announced(settings.store.path, product.served.http_url, admin))
                collect_less_often()
                code = await until_told(stop, lambda: product.pipeline.failed)
        log.info("stopped")
    finally:
        await store.close()
    return code
