"""Lists of any length are keys, though a server takes no form field of more than 128 KiB."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from unit.clickhouse.records import a_run, a_run_version, a_version

from pipeline.model.version import TraceKey
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.golden import runs_by_id
from sinks.clickhouse.long_lists import PIECE, in_pieces
from sinks.clickhouse.traces import load, written
from sinks.clickhouse.writer import write

SQL = "SELECT 1 WHERE a IN {keys:Array(Tuple(String, String))} OR b IN {keys:Array(Tuple(String, String))} AND c = {c:String}"


def test_a_list_that_fits_is_bound_as_it_is() -> None:
    parameters = {"keys": [("p", "t")], "c": "x" * PIECE, "none": []}
    assert in_pieces(SQL, parameters) == (SQL, parameters)


letters = st.tuples(st.sampled_from(["a", "\\", "'", "é", "\n"]), st.integers(0, 9000))


@given(st.lists(st.tuples(letters, letters), max_size=20))
def test_the_pieces_of_a_list_are_the_list_in_every_place_that_names_it(
    drawn: list[tuple[tuple[str, int], tuple[str, int]]],
) -> None:
    keys = [(one * length, other * width) for (one, length), (other, width) in drawn]
    sql, bound = in_pieces(SQL, {"keys": keys, "c": "x"})
    pieces = [value for name, value in bound.items() if name != "c"]
    assert [key for piece in pieces for key in piece] == keys
    assert all(len(piece) == 1 or len(repr(piece).encode()) <= PIECE * 1.1 for piece in pieces)
    for name in bound:
        assert sql.count(f"{{{name}:") == (1 if name == "c" else 2)
    assert ("arrayConcat(" in sql) == (len(pieces) > 1)


def test_traces_of_a_project_with_a_long_name_are_found_a_thousand_at_a_time(database: ClickHouse) -> None:
    project = "long-'\\-" * 40
    keys: list[TraceKey] = [(project, f"{number:032x}") for number in range(1500)]
    write(database, [a_version(a_run_version(a_run(project, trace_id)), project=project) for _, trace_id in keys[::100]])
    assert written(database, keys) == set(keys[::100])
    loaded = load(database, keys)
    assert set(loaded) == set(keys)
    assert [key for key, trace in loaded.items() if trace.runs] == keys[::100]


def test_runs_are_found_by_more_ids_than_one_field_can_hold(database: ClickHouse) -> None:
    versions = [a_run_version(a_run("many", f"{number:032x}")) for number in range(3)]
    write(database, [a_version(replace(version, failing=("verdict",))) for version in versions])
    ids = [f"{number:032x}" for number in range(6000)]
    wanted = sorted({*ids, *(version.run.run_id for version in versions)})
    assert sorted(runs_by_id(database, "many", wanted)) == sorted(version.run.run_id for version in versions)
