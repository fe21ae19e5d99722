"""Every run is in one class at every moment, and no score is there twice or came from nothing (I3, I5): the embedded runtime, some seconds of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clickhouse_front import Front
from clickhouse_front_databases import a_database
from faults.accounted import Accounted, an_embedded, configured, outside
from faults.kinds import ONE_DIMENSION, Kind, Traffic
from faults.sabotage import NO_CLASS_ONCE

from pipeline.config.store import StoreSettings

KINDS = tuple(kind for kind in Kind if kind is not Kind.SILENT)
"""Waiting in vain takes as long as waiting for an answer on a busy machine: ``test_cluster_accounts.py`` has the time."""
DEADLINE_S = 300


@pytest.fixture
def settings(front: Front) -> Iterator[StoreSettings]:
    with a_database(front.url) as made:
        yield made


@contextmanager
def accounted(
    front: Front, settings: StoreSettings, folder: Path, traffic: Traffic, traces: int, sabotage: str = ""
) -> Iterator[Accounted]:
    rubric = folder / "tone.yaml"
    rubric.write_text(ONE_DIMENSION)
    serving, judge = outside()
    with serving:
        more = configured(serving.judge.url, DEADLINE_S, rubric)
        with an_embedded(front, settings, folder, more, sabotage) as url:
            made = Accounted(front, settings, judge, traffic)
            made.run(url, traces=traces, traces_per_s=8, within_s=150)
            yield made


def test_every_run_is_in_one_class_at_every_moment(front: Front, settings: StoreSettings, tmp_path: Path) -> None:
    with accounted(front, settings, tmp_path, Traffic(KINDS), 2 * len(KINDS)) as made:
        made.hold()
        assert made.accounts.looks > 5


def test_a_class_that_is_lost_for_a_moment_is_seen(front: Front, settings: StoreSettings, tmp_path: Path) -> None:
    """The first run row that is written has none; the next version of it, when a late span has come, has again."""
    late = Traffic((Kind.LATE,), sampled_first=False)
    with (
        accounted(front, settings, tmp_path, late, 2, NO_CLASS_ONCE) as made,
        pytest.raises(AssertionError, match="are in no class"),
    ):
        made.hold()
