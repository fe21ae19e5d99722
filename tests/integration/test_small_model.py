"""A real small model as the judge of the running product. It is no judge of quality: what counts is what becomes of everything that it says.

Recorded runs are judged until nothing is pending. Then what the product kept is held against the server's own log, and every score against
the words that it is said to rest on, read here without the product's parser.
"""

import asyncio
import json
import os
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from machine import UnavailableError
from serving import an_up, eventually, get, tracegrade
from small_model_server import MODEL, SmallModel

import pipeline.apps.demo
from pipeline.config.store import StoreSettings
from pipeline.judges.ability import Ability, Form
from pipeline.judges.votes import Vote, VoteState
from pipeline.model.result import Kind, Outcome, Unresolved
from sinks.clickhouse.judge_calls import DayCost
from sinks.clickhouse.run_detail import RunDetail
from sinks.clickhouse.store import Store

pytestmark = [pytest.mark.real, pytest.mark.timeout(2700)]

TRACES: Final = Path(pipeline.apps.demo.__file__).parent / "traces"
RECORDED: Final = (
    "openai-agents/refund_ok.jsonl",
    "openai-openllmetry/no_tools.jsonl",
)
TOO_LONG: Final = "tau-bench/gpt-4o-airline.sample.jsonl"
"""A conversation with a policy of pages: the first of them is more than the model's context."""
VOTES: Final = {"correctness": 3, "completeness": 1, "policy_and_safety": 3, "format": 1, "tone": 1}
"""The judged dimensions of the rubric support; those with a gate have three votes."""
OBSERVED: Final = ("correctness",)
"""Whose scores must quote what the agent was given (``pipeline/judges/rubrics/support.yaml``)."""
PATIENCE_S: Final = 2400.0
"""On a machine that does much else; by itself it takes some five minutes."""
CONFIG: Final = """
store: {{path: {data}}}
receiver: {{http_port: 0, grpc_port: 0}}
assemble: {{quiet_period: 500ms}}
judge:
  base_url: {url}
  model: {model}
  max_output_tokens: 96
  concurrency: 2
  timeout: 10m
  deadline: 60m
  price: {{input_per_million: 0.75, output_per_million: 2.55}}
"""


class Judged(NamedTuple):
    """What is left when everything is judged."""

    doctor: str
    """What ``tracegrade doctor`` printed."""
    answered: Mapping[int, int]
    """By status, how many questions of the product the server's log has."""
    runs: Sequence[RunDetail]
    costs: Sequence[DayCost]
    ability: Ability | None

    @property
    def votes(self) -> list[tuple[RunDetail, Vote]]:
        """All calls, each with the run that it is about."""
        return [(run, vote) for run in self.runs for vote in run.votes]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    """The recorded runs judged by the small model, once for the tests of this module."""
    folder = tmp_path_factory.mktemp("small-model")
    try:
        model = SmallModel(folder / "log")
    except UnavailableError as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    with model:
        yield _judged(model, folder)


def _judged(model: SmallModel, folder: Path) -> Judged:
    config, data, long = folder / "tracegrade.yaml", folder / "data", folder / Path(TOO_LONG).name
    config.write_text(CONFIG.format(data=data, url=model.url, model=MODEL))
    long.write_text((TRACES / TOO_LONG).read_text(encoding="utf-8").splitlines()[0], encoding="utf-8")
    doctor = tracegrade("doctor", "-c", config).out
    asked = Counter(model.answered())
    with an_up(config, data) as up:
        files = [*(TRACES / name for name in RECORDED), long]
        sent = tracegrade("replay", *files, "--endpoint", f"http://{up.grpc}", "--protocol", "grpc")
        assert sent.code == 0, sent

        def is_settled() -> bool:
            accounting = get(f"{up.http}/api/accounting").json
            return accounting["received"] == len(files) and not accounting["pending"] and not accounting["open_traces"]

        eventually(is_settled, PATIENCE_S, lambda: get(f"{up.http}/api/accounting").text)
    answered = Counter(model.answered())
    answered.subtract(asked)
    return asyncio.run(_kept(data, model.url, doctor, answered))


async def _kept(data: Path, url: str, doctor: str, answered: Mapping[int, int]) -> Judged:
    store = Store.open(StoreSettings(path=data))
    try:
        rows = await store.scoreboard("default", 100)
        runs = [await store.run_detail("default", row.run_id) for row in rows]
        known = await store.judge.endpoint(url, MODEL)
        return Judged(doctor, answered, runs, await store.judge.costs("default", 100), None if known is None else known.ability)
    finally:
        await store.close()


def test_every_reply_becomes_a_score_an_unknown_or_an_error_and_the_table_says_how_many(
    judged: Judged, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = Counter((vote.state, vote.outcome, _why(vote)) for _, vote in judged.votes)
    results = Counter(
        (str(one.outcome), one.reason.split(":")[0] if one.value is None else "score")
        for run in judged.runs
        for one in _of_judge(run)
    )
    with capsys.disabled():
        print(f"\nwhat the replies of {MODEL} became:")  # noqa: T201 - what a reader of a run wants to see
        for (state, outcome, why), count in sorted(counts.items()):
            print(f"{count:5} {state:8} {outcome:22} {why}")  # noqa: T201
        print("and the judgments:")  # noqa: T201
        for (said, reason), count in sorted(results.items()):
            print(f"{count:5} {'':8} {said:22} {reason}")  # noqa: T201
    for _, outcome, why in counts:
        match outcome:
            case Outcome.PASS | Outcome.FAIL:
                assert why == "score"
            case Outcome.INSUFFICIENT_EVIDENCE:
                assert why == "unknown"
            case Outcome.GRADER_ERROR:
                assert why in ("malformed", "truncated", "quote_not_found", "refused"), why
            case _:
                pytest.fail(f"a reply is {outcome!r}")


def test_no_reply_is_lost(judged: Judged) -> None:
    votes = [vote for _, vote in judged.votes]
    assert {vote.state for vote in votes} <= {VoteState.REPLY, VoteState.REFUSED}
    assert not [vote.key for vote in votes if vote.lost]
    states = Counter(vote.state for vote in votes)
    assert (states[VoteState.REPLY], states[VoteState.REFUSED]) == (judged.answered[200], judged.answered[400])
    for run in judged.runs:
        first = Counter(vote.key.dimension for vote in run.votes if vote.key.attempt == 0)
        assert first == VOTES, f"{run.line.run_id} was not asked about as its contracts say"
        again = [vote.key for vote in run.votes if vote.key.attempt]
        asked = {(vote.key.dimension, vote.key.vote): _why(vote) for vote in run.votes if vote.key.attempt == 0}
        assert all(asked[key.dimension, key.vote] in ("malformed", "truncated") for key in again), "a verdict was asked for again"


def test_every_judged_dimension_of_every_run_has_a_score_or_a_reason(judged: Judged) -> None:
    assert len(judged.runs) == len(RECORDED) + 1
    for run in judged.runs:
        found = {one.dimension: one for one in _of_judge(run)}
        assert found.keys() == VOTES.keys()
        for one in found.values():
            if one.value is None:
                assert one.outcome in (Outcome.INSUFFICIENT_EVIDENCE, Outcome.GRADER_ERROR)
                assert one.reason.split(":")[0] in (Unresolved.GRADER_ERROR, Unresolved.INSUFFICIENT_EVIDENCE)
            else:
                scores = [vote.score for vote in run.votes if vote.key.dimension == one.dimension and vote.score is not None]
                assert one.value in scores, "three votes have a middle one, and it is one of them"
                assert one.outcome in (Outcome.PASS, Outcome.FAIL)
    (long,) = [run for run in judged.runs if run.line.cohort.agent == "tau-airline"]
    assert {(vote.state, vote.score) for vote in long.votes} == {(VoteState.REFUSED, None)}, "what does not fit was judged"


def test_every_score_quotes_what_stands_in_what_the_judge_was_given(judged: Judged) -> None:
    scored = [(run, vote) for run, vote in judged.votes if vote.score is not None]
    unfound = [vote for _, vote in judged.votes if _why(vote) == "quote_not_found"]
    assert len(scored) + len(unfound) > len(judged.votes) // 4, "hardly a reply has a verdict: this says nothing of quotes"
    for run, vote in scored:
        said = json.loads(vote.raw_reply)
        assert said["score"] == vote.score
        lowest = vote.score == 1
        given = ("system", "result", "error") if vote.key.dimension in OBSERVED and not lowest else ()
        texts = list(_texts(json.loads(run.transcript or "null"), given))
        quote = _folded(said["evidence"]).strip(" \"'")
        assert quote, f"{vote.key} has a score and no quote"
        assert any(quote in _folded(text) for text in texts), f"{vote.key} quotes {quote!r}, which stands nowhere"


def test_usage_is_counted(judged: Judged) -> None:
    replies = [vote for _, vote in judged.votes if vote.state is VoteState.REPLY]
    assert all(vote.input_tokens and vote.output_tokens for vote in replies)
    assert all(vote.cost_usd for vote in replies)
    tokens = [(vote.input_tokens or 0, vote.output_tokens or 0) for vote in replies]
    assert sum(day.input_tokens or 0 for day in judged.costs) == sum(given for given, _ in tokens)
    assert sum(day.output_tokens or 0 for day in judged.costs) == sum(taken for _, taken in tokens)
    dollars = sum(given * 0.75 + taken * 2.55 for given, taken in tokens) / 1e6
    assert sum(day.cost_usd or 0.0 for day in judged.costs) == pytest.approx(dollars)


def test_what_the_endpoint_can_do_was_found_out_and_is_told(judged: Judged) -> None:
    assert judged.answered[500] > 0, "it takes a JSON Schema now: nothing was found out"
    assert judged.ability == Ability(form=Form.OBJECT_SCHEMA, usage=True)
    assert f"{MODEL} at http://" in judged.doctor
    assert "it takes a JSON object with a schema, max_tokens, seeds, a temperature; it counts tokens" in judged.doctor


def _of_judge(run: RunDetail) -> list[Any]:
    return [one for one in run.results if one.kind is Kind.JUDGED]


def _why(vote: Vote) -> str:
    return "score" if vote.score is not None else vote.reason.split(":")[0]


def _texts(shown: Any, keys: Sequence[str], key: str = "") -> Iterator[str]:
    """Yield the texts of a transcript, or those under some of its keys."""
    match shown:
        case str() if not keys or key in keys:
            yield shown
        case Mapping():
            for name, value in shown.items():
                yield from _texts(value, keys, name)
        case list():
            for value in shown:
                yield from _texts(value, keys, key)


def _folded(text: str) -> str:
    straight = text.translate(str.maketrans("‘’“”«»", '\'\'""""'))
    return " ".join(unicodedata.normalize("NFC", straight).split())
