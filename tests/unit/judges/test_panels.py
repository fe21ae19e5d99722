"""Panels of several models over real HTTP: each with its own endpoint, key, price, ability and circuit, within one purse."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
import pytest
from builders import T0
from judge_builders import SUPPORT, a_request_to_judge, a_verdict, refunded
from msgspec.structs import replace

from pipeline.errors import ConfigurationError, TemporaryError
from pipeline.judges.contract import ballots, judge_contract
from pipeline.judges.endpoint import Endpoint
from pipeline.judges.judge import Judge
from pipeline.judges.model import PausedError
from pipeline.judges.openai import OpenAIModel
from pipeline.judges.purse import Purse
from pipeline.judges.scripted import Canned, Script, ScriptedJudge, failing, malformed, wrong_quote
from pipeline.judges.settings import JudgeSettings
from pipeline.judges.votes import VotesInMemory, VoteState
from pipeline.model.result import Judgment, Outcome, Unresolved
from pipeline.model.rubric import Panel, PanelRule, Rubric
from pipeline.model.time import SECOND
from pipeline.runtime.clock import ManualClock

FIRST, SECOND_, THIRD = "gpt-4.1", "claude-haiku-4-5", "llama-3.3-70b"
MODELS = (FIRST, SECOND_, THIRD)
PRICES = {FIRST: 1, SECOND_: 10, THIRD: 100}
"""US dollars per million tokens, in and out."""


def saying(score: object) -> Canned:
    return Canned(text=a_verdict(score, f"It is {score}.", "" if score == "Unknown" else '"amount": 42.5'))


def panelled(rule: PanelRule = PanelRule.MAJORITY, models: tuple[str, ...] = MODELS, dimension: str = "correctness") -> Rubric:
    return replace(SUPPORT, panels=((dimension, Panel(models, rule)),))


class World:
    """A judge with three models at three endpoints."""

    def __init__(self, rubric: Rubric, servers: dict[str, ScriptedJudge], settings: JudgeSettings, stack: AsyncExitStack) -> None:
        self.rubric, self.servers, self.settings = rubric, servers, settings
        self.votes, self.clock, self._stack = VotesInMemory(), ManualClock(T0), stack

    async def open(self, environment: dict[str, str]) -> None:
        models = {
            name: await self._stack.enter_async_context(OpenAIModel(self.settings.of(name), environment)) for name in MODELS
        }
        self.models = models
        self.endpoints = {name: Endpoint(one, self.settings.of(name), self.clock.now) for name, one in models.items()}
        purse = Purse(self.settings.budget, self.votes, self.clock.now)
        self.judge = Judge(self.rubric, self.settings, self.endpoints, purse, self.votes, self.clock.now)

    async def judged(self, dimension: str = "correctness", **fields: Any) -> Judgment:
        request = a_request_to_judge(refunded(), self.judge, **fields)
        return await self.judge.judge(request, dimension, self.judge.contracts[dimension].hash)

    @property
    def asked(self) -> list[int]:
        return [len(self.servers[name].asked) for name in MODELS]


@asynccontextmanager
async def a_world(
    *replies: Script, rubric: Rubric | None = None, environment: dict[str, str] | None = None, **judge: Any
) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        servers = {
            name: await stack.enter_async_context(ScriptedJudge(script))
            for name, script in zip(MODELS, replies or ((), (), ()), strict=True)
        }
        price = {name: {"input_per_million": PRICES[name], "output_per_million": PRICES[name]} for name in MODELS}
        further = {
            name: {"base_url": servers[name].url, "api_key_env": f"KEY_{number}", "price": price[name]}
            for number, name in enumerate(MODELS)
            if name != FIRST
        }
        given = {"base_url": servers[FIRST].url, "model": FIRST, "price": price[FIRST], "models": further}
        settings = JudgeSettings.model_validate({**given, "timeout": 5 * SECOND, **judge})
        world = World(rubric or panelled(), servers, settings, stack)
        await world.open(environment or {})
        yield world


async def test_each_model_is_asked_once_at_its_own_endpoint_in_order() -> None:
    async with a_world([saying(5)], [saying(2)], [saying(4)]) as world:
        judgment = await world.judged()
        assert world.asked == [1, 1, 1]
        for name in MODELS:
            body = world.servers[name].asked[0].body
            assert (body["model"], body["temperature"], "seed" in body) == (name, 0, False)
    assert (judgment.outcome, judgment.score, judgment.votes) == (Outcome.PASS, 4.5, 3)
    assert judgment.models == MODELS
    replies = [row for row in world.votes.rows if row.state is VoteState.REPLY]
    assert [(row.key.vote, row.model, row.score) for row in replies] == [(0, FIRST, 5.0), (1, SECOND_, 2.0), (2, THIRD, 4.0)]


async def test_one_veto_fails_what_the_others_pass() -> None:
    async with a_world([saying(5)], [saying(5)], [saying(2)], rubric=panelled(PanelRule.VETO)) as world:
        judgment = await world.judged()
    assert (judgment.outcome, judgment.score, judgment.reason) == (Outcome.FAIL, 2.0, "It is 2.")


@pytest.mark.parametrize(
    ("third", "majority", "veto"),
    [
        ([saying(5)], Outcome.PASS, Outcome.PASS),
        ([saying(1)], Outcome.PASS, Outcome.FAIL),
        ([saying("Unknown")], Outcome.PASS, Outcome.INSUFFICIENT_EVIDENCE),
        ([malformed(), malformed()], Outcome.PASS, Outcome.GRADER_ERROR),
        ([wrong_quote()], Outcome.PASS, Outcome.GRADER_ERROR),
        ([failing(418)], Outcome.PASS, Outcome.GRADER_ERROR),
    ],
    ids=["passes", "fails", "unknown", "malformed", "no quote", "refused"],
)
async def test_a_model_that_decides_nothing_makes_no_pass_that_would_not_have_been_one(
    third: list[Canned], majority: Outcome, veto: Outcome
) -> None:
    for rule, expected in ((PanelRule.MAJORITY, majority), (PanelRule.VETO, veto)):
        async with a_world([saying(5)], [saying(5)], list(third), rubric=panelled(rule)) as world:
            judgment = await world.judged()
        assert judgment.outcome is expected
        assert (judgment.score is None) == (not expected.decided)


async def test_the_dimensions_without_a_panel_are_judged_by_the_one_model() -> None:
    async with a_world() as world:
        judgment = await world.judged("policy_and_safety")
        assert world.asked == [3, 0, 0]
    assert judgment.models == (FIRST,)


async def test_a_dimension_without_a_gate_can_have_a_panel_too() -> None:
    async with a_world([saying(3)], [saying(2)], [saying(4)], rubric=panelled(dimension="tone")) as world:
        judgment = await world.judged("tone")
    assert (judgment.outcome, judgment.score) == (Outcome.PASS, 3.5)


async def test_the_families_of_all_are_recorded_and_one_of_the_agents_own_is_flagged() -> None:
    async with a_world() as world:
        own = await world.judged(models=("claude-opus-4-1",))
        other = await world.judged("correctness", models=("gemini-2.5-pro",))
    assert {"judge_family:openai", "judge_family:anthropic", "judge_family:meta"} < set(own.flags)
    assert ("same_family" in own.flags, "same_family" in other.flags) == (True, False)


async def test_each_call_costs_what_its_own_model_costs() -> None:
    async with a_world() as world:
        judgment = await world.judged()
        rows = [row for row in world.votes.rows if row.state is VoteState.REPLY]
    for row in rows:
        tokens = (row.input_tokens or 0) + (row.output_tokens or 0)
        assert row.cost_usd == pytest.approx(tokens * PRICES[row.model] / 1e6)
    assert judgment.cost_usd == pytest.approx(sum(row.cost_usd or 0 for row in rows))


async def test_all_spend_from_one_purse() -> None:
    """With less than the dearest model can cost, the cheap ones are asked and the dimension is capped."""
    async with a_world(budget={"per_day": "0.1"}) as world:
        judgment = await world.judged()
        assert world.asked == [1, 1, 0]
    assert (judgment.unresolved, judgment.score, judgment.models) == (Unresolved.BUDGET, None, (FIRST, SECOND_))


async def test_a_key_goes_to_no_endpoint_but_its_own() -> None:
    environment = {"OPENAI_API_KEY": "first-secret", "KEY_1": "second-secret"}
    async with a_world(environment=environment) as world:
        await world.judged()
        sent = [world.servers[name].asked[0].authorization for name in MODELS]
    assert sent == ["Bearer first-secret", "Bearer second-secret", "Bearer none"]


async def test_a_paused_endpoint_holds_back_its_own_model_and_buys_nothing_twice() -> None:
    async with a_world([saying(5)], [failing(401), saying(5)], [saying(5)]) as world:
        for _ in range(2):
            with pytest.raises(PausedError, match="KEY_1"):
                await world.judged()
        assert (await world.judged("tone")).score is not None, "what needs only the first model goes on"
        assert world.asked == [2, 1, 0]
        assert [world.endpoints[name].circuit.is_open for name in MODELS] == [False, True, False]
        world.clock.advance_to(T0 + 60 * SECOND)
        assert (await world.judged()).score == 5.0
        assert world.asked == [2, 2, 1]


async def test_an_outage_of_one_buys_the_others_votes_once() -> None:
    async with a_world([saying(5)], [saying(4)], [failing(503), saying(5)]) as world:
        with pytest.raises(TemporaryError, match="busy or broken"):
            await world.judged()
        judgment = await world.judged()
        assert world.asked == [1, 1, 2]
    assert (judgment.outcome, judgment.votes) == (Outcome.PASS, 3)


async def test_what_each_endpoint_takes_is_found_out_for_itself() -> None:
    async with a_world((), (), ()) as world:
        world.servers[SECOND_]._formats = frozenset()
        await world.judged()
        forms = {name: ability.form.value for name in MODELS if (ability := world.models[name].ability)}
    assert forms == {FIRST: "json_schema", SECOND_: "text", THIRD: "json_schema"}


class TestContract:
    SETTINGS = JudgeSettings(base_url="http://127.0.0.1:1/v1", model=FIRST)
    ONE = judge_contract(panelled(), "correctness", SETTINGS)

    def test_it_names_the_models_in_order_and_the_rule(self) -> None:
        assert (self.ONE.model, self.ONE.models, self.ONE.judges) == ("", MODELS, MODELS)
        assert self.ONE.aggregation == "panel-line-votes-1:majority"
        assert [(one.model, one.seed, one.temperature) for one in ballots(self.ONE)] == [(name, None, 0.0) for name in MODELS]
        assert msgspec.json.decode(self.ONE.canonical, type=type(self.ONE)) == self.ONE

    @pytest.mark.parametrize(
        "panel",
        [
            Panel((SECOND_, FIRST, THIRD)),
            Panel(MODELS[:2]),
            Panel(MODELS, PanelRule.VETO),
            Panel(MODELS, PanelRule.VETO, vetoes=2),
        ],
        ids=["order", "fewer", "veto", "two vetoes"],
    )
    def test_whatever_moves_an_outcome_is_another_contract(self, panel: Panel) -> None:
        other = judge_contract(replace(SUPPORT, panels=(("correctness", panel),)), "correctness", self.SETTINGS)
        assert other.hash != self.ONE.hash
        veto = judge_contract(panelled(PanelRule.VETO), "correctness", self.SETTINGS)
        assert (other.hash == veto.hash) == (panel == Panel(MODELS, PanelRule.VETO))

    def test_a_panel_is_no_part_of_what_is_asked(self) -> None:
        without = judge_contract(SUPPORT, "correctness", self.SETTINGS)
        assert (without.rubric_hash, without.prompt_hash) == (self.ONE.rubric_hash, self.ONE.prompt_hash)
        assert judge_contract(panelled(), "tone", self.SETTINGS) == judge_contract(SUPPORT, "tone", self.SETTINGS)
        assert SUPPORT.hash != panelled().hash

    @pytest.mark.parametrize(
        "change", [lambda one: one.model_copy(update={"model": "other"}), lambda one: one.model_copy(update={"seeds": (1, 2, 3)})]
    )
    def test_the_model_that_judges_alone_is_no_part_of_it(self, change: Callable[[JudgeSettings], JudgeSettings]) -> None:
        assert judge_contract(panelled(), "correctness", change(self.SETTINGS)).hash == self.ONE.hash


def test_a_model_that_is_not_configured_has_no_settings() -> None:
    settings = JudgeSettings(base_url="http://127.0.0.1:1/v1", model=FIRST)
    with pytest.raises(ConfigurationError, match=r"no endpoint is configured for llama-3\.3-70b; write it under judge\.models"):
        settings.of(THIRD)
