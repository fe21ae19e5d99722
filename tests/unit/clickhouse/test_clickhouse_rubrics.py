"""Rubrics in the store: what a contract's rubric hash stands for, whatever the file says today."""

from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from pipeline.config.rubrics import load
from pipeline.config.store import StoreSettings
from pipeline.model.risk import Risk, at_risk
from sinks.clickhouse.store import Store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = Store.open(StoreSettings(path=tmp_path))
    yield opened
    await opened.close()


async def test_a_rubric_comes_back_whole_under_its_hash_however_often_it_is_stored(store: Store) -> None:
    kept = [load(name) for name in ("support", "agent-output", "criteria")] + [at_risk(load("support"), Risk.MOVES_MONEY)]
    await store.rubrics.insert(kept)
    await store.rubrics.insert(kept)
    for rubric in kept:
        found = await store.rubrics.of(rubric.hash)
        assert found == rubric
        assert found.hash == rubric.hash
    assert len({rubric.hash for rubric in kept}) == 4


async def test_a_changed_rubric_replaces_none(store: Store) -> None:
    before = load("support")
    after = replace(before, bar=Decimal("75.5"))
    await store.rubrics.insert([before])
    await store.rubrics.insert([after])
    assert await store.rubrics.of(before.hash) == before
    assert await store.rubrics.of(after.hash) == after


async def test_what_was_never_stored_is_none(store: Store) -> None:
    await store.rubrics.insert([])
    assert await store.rubrics.of("0" * 16) is None
    assert await store.rubrics.of("") is None
