"""Runs by their id, and the last of a conversation: what feedback is about where it names no trace."""

import pytest
from builders import T0
from clickhouse_front import Front
from clickhouse_front_databases import a_database
from unit.clickhouse.records import a_run, a_run_version, a_version, opened, retract

from pipeline.config.store import StoreSettings
from pipeline.errors import TemporaryError
from pipeline.model.time import SECOND
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.run_finder import RunFinder, last_of, run
from sinks.clickhouse.writer import write


def test_a_run_is_found_by_its_whole_id_in_its_project(database: ClickHouse) -> None:
    known = a_run("finder")
    write(database, [a_version(a_run_version(known))])
    assert run(database, "finder", known.run_id) == (known.trace_id, known.run_id)
    assert run(database, "finder", known.run_id[:-1]) is None
    assert run(database, "another", known.run_id) is None


def test_a_retracted_run_is_found_since_what_is_said_of_it_counts_for_its_heir(database: ClickHouse) -> None:
    gone, heir = a_run("merged", head="a1"), a_run("merged", head="a2")
    write(database, [a_version(a_run_version(gone))])
    write(database, [a_version(a_run_version(heir, 8), facts=2, retractions=(retract(gone, heir, 8),))])
    assert run(database, "merged", gone.run_id) == (gone.trace_id, gone.run_id)
    assert last_of(database, "merged", "conversation-7") == (heir.trace_id, heir.run_id)


def test_of_a_conversation_the_run_that_ended_last_is_found(database: ClickHouse) -> None:
    runs = [a_run("talk", f"{number:032x}", end_ns=T0 + end * SECOND) for number, end in ((1, 5), (2, 9), (3, 7))]
    write(database, [a_version(a_run_version(one)) for one in runs])
    elsewhere = a_run("talk", f"{4:032x}", end_ns=T0 + 99 * SECOND, conversation_id="conversation-8")
    write(database, [a_version(a_run_version(elsewhere))])
    assert last_of(database, "talk", "conversation-7") == (runs[1].trace_id, runs[1].run_id)
    assert last_of(database, "another", "conversation-7") is None
    write(database, [a_version(a_run_version(a_run("talk", f"{2:032x}", conversation_id="conversation-8"), 8), facts=2)])
    assert last_of(database, "talk", "conversation-7") == (runs[2].trace_id, runs[2].run_id), "by what the run says now"


def test_a_conversation_is_found_by_an_index(database: ClickHouse) -> None:
    write(database, [a_version(a_run_version(a_run("index-of-talks")))])
    asked = "SELECT project FROM runs WHERE project = 'index-of-talks' AND conversation_id = 'conversation-7'"
    plan = database.query(f"EXPLAIN indexes = 1 {asked}")
    assert any("Name: conversation_id_bloom" in row["explain"] for row in plan)


async def test_a_finder_opens_the_store_when_it_is_asked_and_not_before(front: Front) -> None:
    with a_database(front.url) as settings, opened(settings) as database:
        write(database, [a_version(a_run_version(a_run("lazy")))])
        finder = RunFinder(settings, {})
        known = a_run("lazy")
        assert await finder.run("lazy", known.run_id) == (known.trace_id, known.run_id)
        assert await finder.last_of("lazy", "conversation-7") == (known.trace_id, known.run_id)
        await finder.close()
        await finder.close()


async def test_a_store_whose_tables_are_not_made_yet_is_temporary_trouble(front: Front) -> None:
    with a_database(front.url) as settings:
        finder = RunFinder(settings, {})
        with pytest.raises(TemporaryError, match="send the trace_id, or try again"):
            await finder.run("p", "ab" * 16)
        await finder.close()


@pytest.mark.parametrize(
    "settings",
    [StoreSettings(url="http://127.0.0.1:1"), StoreSettings(url="http://127.0.0.1:1", password_env="NOT_SET")],  # noqa: S106
    ids=["a server that is away", "a password that is not set"],
)
async def test_a_store_that_cannot_be_asked_is_temporary_trouble(settings: StoreSettings) -> None:
    finder = RunFinder(settings, {})
    for _ in range(2):
        with pytest.raises(TemporaryError):
            await finder.run("p", "ab" * 16)
    await finder.close()
