from pathlib import Path

from collectors.replay import read
from collectors.replay.wire import spans_in

DEMO = Path(__file__).parents[3] / "pipeline" / "apps" / "demo" / "traces"


def test_every_bundled_file_holds_spans_and_every_folder_says_where_it_is_from() -> None:
    recordings = list(read([DEMO]))
    assert [recording.path.name for recording in recordings if recording.skipped] == []
    folders = {recording.path.parent for recording in recordings}
    assert len(folders) >= 6
    assert all((folder / "LICENSE.note").is_file() for folder in folders)
    assert {recording.source for recording in recordings} == {"OTLP/JSON", "tau-bench", "agentdojo"}


def test_the_bundled_files_are_small_and_hold_enough_runs() -> None:
    assert sum(path.stat().st_size for path in DEMO.rglob("*") if path.is_file()) < 2_500_000
    traces = {
        span.trace_id
        for recording in read([DEMO])
        for request in recording.requests()
        for span in spans_in(request)
        if not span.name.startswith("create_agent")
    }
    assert len(traces) >= 30
