import msgspec

from pipeline.apps.bench import load, measure


async def test_everything_is_measured_in_one_run_beside_the_floor() -> None:
    report = await measure(20)
    assert report.spans == 20 * load.SPANS
    assert 500 < report.bytes_a_span < 1000
    rates = [report.bare_decoding, report.decoding, report.accepted, report.scored]
    assert rates == sorted(rates, reverse=True)
    assert report.scored > 0
    assert report.runs_scored == report.scored / load.SPANS
    assert report.peak_memory_mb > 10
    shown = report.table().splitlines()
    assert [line.rpartition("spans/s")[0].rstrip("0123456789, ") for line in shown if "spans/s" in line] == [
        "bare OTLP decoding (the floor)",
        "decoding into sealed spans",
        "accepted by the receiver, durably stored",
        "from OTLP to stored scores",
    ]
    assert any("runs/s" in line for line in shown)
    assert any(line.startswith("peak memory") and line.endswith("MB") for line in shown)
    assert msgspec.json.decode(msgspec.json.encode(report))["spans"] == report.spans
