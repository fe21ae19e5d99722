"""Trajectories against a reference: the same answers as ``agentevals``, where both mean the same; and the benchmark of scoring works."""

import bench_scoring
import pytest
from agentevals_beside.trajectories import pairs


def test_every_part_of_scoring_costs_something() -> None:
    costs = dict(bench_scoring.parts(2))
    assert len(costs) == 4
    assert all(cost > 0 for cost in costs.values())


@pytest.mark.real
def test_both_say_the_same_of_the_same_trajectories() -> None:
    for mode in bench_scoring.modes(pairs()):
        assert mode.agree == mode.alike, mode
        assert 0 < mode.passing < mode.alike, "some pass and some do not"
