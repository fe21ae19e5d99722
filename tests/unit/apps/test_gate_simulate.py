"""``tracegrade gate simulate``: what a person is told before a gate may wake them."""

import json
from pathlib import Path

import pytest

from pipeline.apps import gate_commands, gate_simulation
from pipeline.apps.gate_simulation import WITHIN, allowed, gates_of
from pipeline.config.load import load
from pipeline.errors import ConfigurationError

YAML = """
gates:
  - {name: low verdicts, kind: floor, raise_below: 0.8, clear_above: 0.9}
  - {name: slow percent, kind: floor, dimension: composite, measure: mean, raise_below: 60, clear_above: 70}
  - {name: burning, kind: burn_rate, budget: 0.05}
  - {name: checks, kind: hard}
"""


@pytest.fixture(autouse=True)
def few_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_simulation, "CHANGES", 4)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tracegrade.yaml"
    path.write_text(YAML)
    return path


def test_calm_and_changes_are_told_for_each_gate_over_rates(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate_commands.simulate(config, "", 60, 1, None, 1, 0, json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["gate"] for one in told] == ["low verdicts"] * 4 + ["burning"] * 4
    for name, budget in (("low verdicts", 0.2), ("burning", 0.05)):
        calm, *changes = [one for one in told if one["gate"] == name]
        assert calm["failing"] == pytest.approx(0.8 * budget)
        assert [one["failing"] for one in changes] == pytest.approx([min(times * budget, 1) for times in (2, 4, 8)])
        assert all(one["seen"] == one["changes"] == 4 and one["median_hours"] > 0 for one in changes)
    low, burning = told[0], told[4]
    assert low["false_alarms"] > 10 > burning["false_alarms"], "a plain comparison of rates is no alarm (judging, section 5)"


def test_it_reads_as_sentences(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate_commands.simulate(config, "burning", 60, 1, 0.0, 1, 0, json=False)
    first, *changes = capsys.readouterr().out.splitlines()
    assert first == "burning: 0 of the runs fail, for 1 months of 30 days: 0 incidents, 0 a month, 0 h of a month"
    assert len(changes) == 3
    assert changes[0].startswith(
        "burning: 0.1 of the runs fail, from one minute to the next: 4 of 4 seen within a day, the median after "
    )


def test_a_gate_that_cannot_be_simulated_is_a_sentence(config: Path) -> None:
    for name in ("checks", "slow percent", "no such"):
        with pytest.raises(ConfigurationError, match=f"no gate {name!r} over the rate.*: low verdicts, burning"):
            gate_commands.simulate(config, name, 60, 1, None, 1, 0, json=False)


@pytest.mark.parametrize(
    ("rate", "judged", "failing", "months"), [(0, 1, None, 1), (60, 0, None, 1), (60, 1, 1.1, 1), (60, 1, None, 0)]
)
def test_traffic_that_cannot_be_is_a_sentence(
    config: Path, rate: float, judged: float, failing: float | None, months: int
) -> None:
    with pytest.raises(ConfigurationError, match="write --runs-per-hour above 0"):
        gate_commands.simulate(config, "", rate, judged, failing, months, 0, json=False)


def test_what_a_gate_allows_is_its_budget_or_what_is_above_its_floor(config: Path) -> None:
    low, burning = gates_of(load(config), "")
    assert [allowed(low), allowed(burning)] == pytest.approx([0.2, 0.05])
    assert WITHIN == 0.8
