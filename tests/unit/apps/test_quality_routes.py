"""Who may have a score made again, and whose scores a key shows."""

from typing import Any, cast

from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from contract.test_store_evaluations import an_evaluation
from msgspec import json

from collectors.otlp.keys import Keys
from pipeline.apps.quality_routes import quality_routes
from pipeline.model.quality import QualitySpec
from sinks.clickhouse.store import Store
from sinks.memory_gates import MemoryGateStore

KEYS = Keys({"of-shop": "shop", "of-desk": "desk"}, "default")
OPEN = Keys({}, "default")


async def asked(
    store: MemoryGateStore, keys: Keys, path: str, match: str = "", key: str = "", peer: str = "127.0.0.1"
) -> web.Response:
    routes = quality_routes(cast("Store", store), keys, {"default": QualitySpec()})
    (route,) = (one for one in routes if one.path == path)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request: Any = make_mocked_request(route.method, path, headers=headers, match_info={"id": match})
    answer: web.Response = await cast("Any", route.handler)(request.clone(remote=peer))
    return answer


async def test_a_score_is_made_again_for_who_has_a_key_or_where_there_are_none_for_its_own_machine() -> None:
    store = MemoryGateStore()
    made = an_evaluation("default")
    await store.write_evaluations([made, an_evaluation("shop")])
    again = "/api/quality/recompute/{id}"
    assert (await asked(store, OPEN, again, made.id)).status == 200
    assert (await asked(store, OPEN, again, made.id, peer="::1")).status == 200
    refused = await asked(store, OPEN, again, made.id, peer="192.0.2.7")
    assert refused.status == 401
    assert "configure receiver.keys" in json.decode(refused.text or "")["error"]
    assert (await asked(store, KEYS, again, made.id)).status == 401
    assert (await asked(store, KEYS, again, an_evaluation("shop").id, "of-shop", "192.0.2.7")).status == 200


async def test_a_key_shows_the_scores_of_its_own_project() -> None:
    store = MemoryGateStore()
    made = an_evaluation("shop")
    await store.write_evaluations([made])
    one = "/api/quality/{id}"
    assert (await asked(store, KEYS, one, made.id, "of-shop")).status == 200
    assert (await asked(store, KEYS, one, made.id, "of-desk")).status == 404
    assert (await asked(store, KEYS, "/api/quality", key="of-desk")).body == b"[]"
    assert (await asked(store, KEYS, "/api/quality/spec")).status == 401
