"""``tracegrade judge``: a trial in the open on a stored run, and what was spent, from a folder and from a running ``up``."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.judged import JUDGED, Judged
from faults.outside import Outside
from ruamel.yaml import YAML
from serving import an_up, tracegrade

from pipeline.judges.scripted import MODEL

pytestmark = pytest.mark.slow


@pytest.fixture
async def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder with two judged runs in it; the id of the first."""
    async with Judged(tmp_path, monkeypatch) as world:
        first, _ = await world.send(2)
        await world.until(world.nothing_is_pending, "the judgments")
    return first.run_id


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Path]:
    with Outside() as outside:
        path = tmp_path / "tracegrade.yaml"
        price = {"input_per_million": 0.75, "output_per_million": 2.55}
        judge = {"base_url": outside.judge.url, "model": MODEL, "price": price}
        receiver = {"http_port": 0, "grpc_port": 0}
        with path.open("w") as file:
            YAML().dump({"project": "faults", "store": {"path": "data"}, "receiver": receiver, "judge": judge}, file)
        yield path


def test_a_trial_shows_prompt_reply_reading_and_cost_and_stores_nothing(played: str, config: Path, tmp_path: Path) -> None:
    before = tracegrade("judge", "cost", "-c", config, "--json").json
    said = tracegrade("judge", "try", played[:10], "-d", "correctness", "-c", config, "--json").json
    assert (said["run_id"], said["dimension"], len(said["calls"])) == (played, "correctness", 3)
    prompt = said["calls"][0]["prompt"]
    assert "on one dimension: correctness." in prompt[0]["text"]
    assert "Please refund order" in prompt[1]["text"]
    votes = [one["vote"] for one in said["calls"]]
    assert [vote["outcome"] for vote in votes] == [said["judgment"]["outcome"]] * 3
    assert said["judgment"]["cost_usd"] == pytest.approx(sum(vote["cost_usd"] for vote in votes))
    text = tracegrade("judge", "try", played, "-d", "tone", "-c", config)
    assert text.code == 0
    for part in (
        "--- prompt, system",
        "--- prompt, user",
        "--- reply 1 of 1",
        "--- read as: pass, score 4",
        "Nothing of this was stored.",
    ):
        assert part in text.out
    assert tracegrade("judge", "cost", "-c", config, "--json").json == before
    assert {day["dimension"] for day in before} == set(JUDGED)
    assert sum(day["calls"] for day in before) == 2 * 9, "two runs, nine calls each"
    wrong = tracegrade("judge", "try", played, "-d", "nope", "-c", config)
    assert (wrong.code, "--dimension is one of correctness, " in wrong.err) == (2, True)
    with an_up(config, tmp_path / "data"):
        assert tracegrade("judge", "cost", "-c", config, "--json").json == before
        assert tracegrade("judge", "try", played, "-d", "tone", "-c", config).code == 0
        assert "18 calls, " in tracegrade("judge", "cost", "-c", config).out


def test_two_runs_are_compared_in_both_orders_stored_and_not_bought_again(played: str, config: Path, tmp_path: Path) -> None:
    board = tracegrade("scoreboard", "-c", config, "--json").json["runs"]
    other = next(run["run_id"] for run in board if run["run_id"] != played)
    plain = ("judge", "compare", played[:12], other, "-d", "format", "-c", config)
    refused = tracegrade(*plain)
    assert (refused.code, "they answer different requests; ask with --across-requests" in refused.err) == (2, True)
    ask = (*plain, "--across-requests")
    made = tracegrade(*ask, "--json").json
    (pair,) = made["pairs"]
    said = pair["judgment"]
    assert (said["run_a"], said["run_b"], made["stored"], made["unjudged"]) == (played, other, True, [])
    assert [len(calls) for calls in pair["calls"]] == [1, 1]
    assert (said["outcome"], made["contract"]["kind"]) == ("tie", "pairwise")
    assert tracegrade(*ask, "--json").json["pairs"][0]["calls"] == pair["calls"]
    days = tracegrade("judge", "cost", "-c", config, "--json").json
    assert sum(day["calls"] for day in days) == 2 * 9 + 2, "two runs, nine calls each, and one call for each order"
    with an_up(config, tmp_path / "data"):
        text = tracegrade(*ask)
        assert (text.code, "nothing of this was stored" in text.out) == (0, True)
        assert "=== a tie, in both orders" in text.out
