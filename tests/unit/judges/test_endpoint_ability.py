"""What an endpoint takes: found out by trying, one step down for each refusal, and what it says it refuses is believed."""

from typing import Any

import pytest
from msgspec.structs import replace

from pipeline.judges.ability import Ability, Form, Limit, Refusal
from pipeline.judges.model import ChatRequest
from pipeline.judges.openai import OpenAIModel
from pipeline.judges.scripted import MODEL, Canned, ScriptedJudge, failing
from pipeline.judges.settings import JudgeSettings
from pipeline.model.step import Message
from pipeline.model.time import SECOND

ANY = Ability()
SCHEMA = {"type": "object"}
REQUEST = ChatRequest((Message("user", "Data."),), SCHEMA, most_tokens=500, temperature=0.7, seed=23)


def steps(status: int, said: str = "") -> list[Ability]:
    """All abilities that are tried of an endpoint that always refuses in these words."""
    tried = [ANY]
    while (milder := tried[-1].without(Refusal(status, said))) is not None:
        tried.append(milder)
    return tried


def test_a_refusal_that_names_nothing_is_about_the_form_and_then_about_everything() -> None:
    last = Ability(Form.TEXT, Limit.NONE, seed=False, temperature=False)
    assert steps(400) == [*(replace(ANY, form=form) for form in Form), last]


def test_a_fault_is_about_the_form_or_an_outage_and_never_about_the_rest() -> None:
    assert steps(500, "seed") == [replace(ANY, form=form) for form in Form]


@pytest.mark.parametrize(
    ("said", "milder"),
    [
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", replace(ANY, limit=Limit.MAX_COMPLETION_TOKENS)),
        ("Unrecognized request argument supplied: seed", replace(ANY, seed=False)),
        ("'temperature' does not support 0 with this model", replace(ANY, temperature=False)),
        ("response_format json_schema is not supported", replace(ANY, form=Form.OBJECT_SCHEMA)),
        ("we cannot proceed, seeds of trouble", replace(ANY, form=Form.OBJECT_SCHEMA)),
    ],
)  # fmt: skip
def test_what_a_refusal_names_is_left_out(said: str, milder: Ability) -> None:
    assert ANY.without(Refusal(400, said)) == milder


def test_a_prompt_that_is_too_long_says_nothing_about_what_was_asked_for_beside_it() -> None:
    said = "This model's maximum context length is 4096 tokens, you requested 5000 (2952 in the messages, 2048 max_tokens)"
    assert not Refusal(400, said).is_one


@pytest.mark.parametrize(
    ("ability", "sent"),
    [
        (ANY, {"response_format": {"type": "json_schema", "json_schema": {"name": "grade", "strict": True, "schema": SCHEMA}},
               "max_tokens": 500, "seed": 23, "temperature": 0.7}),
        (Ability(Form.OBJECT_SCHEMA, Limit.MAX_COMPLETION_TOKENS),
         {"response_format": {"type": "json_object", "schema": SCHEMA}, "max_completion_tokens": 500, "seed": 23, "temperature": 0.7}),
        (Ability(Form.JSON_OBJECT, Limit.NONE, seed=False), {"response_format": {"type": "json_object"}, "temperature": 0.7}),
        (Ability(Form.TEXT, Limit.NONE, seed=False, temperature=False), {}),
    ],
)  # fmt: skip
async def test_what_is_sent_is_what_the_endpoint_takes(ability: Ability, sent: dict[str, Any]) -> None:
    formats = frozenset({"json_schema", "json_object", "json_object_schema"})
    async with ScriptedJudge(formats=formats) as server, a_model(server, ability) as model:
        await model.ask(REQUEST)
    (asked,) = server.asked
    assert {key: value for key, value in asked.body.items() if key not in ("model", "messages")} == sent


def a_model(server: ScriptedJudge, known: Ability | None = None, learned: list[Ability] | None = None) -> OpenAIModel:
    async def learn(ability: Ability) -> None:
        if learned is not None:
            learned.append(ability)

    settings = JudgeSettings.model_validate({"base_url": server.url, "model": MODEL, "timeout": 5 * SECOND})
    return OpenAIModel(settings, {}, known, learn)


async def test_an_endpoint_that_refuses_by_name_is_asked_without_it_and_that_is_remembered() -> None:
    learned: list[Ability] = []
    refuses = frozenset({"seed", "max_tokens", "temperature"})
    async with ScriptedJudge(refuses=refuses) as server, a_model(server, learned=learned) as model:
        await model.ask(REQUEST)
        tried = len(server.asked)
        await model.ask(REQUEST)
        assert len(server.asked) == tried + 1
    expected = Ability(Form.JSON_SCHEMA, Limit.MAX_COMPLETION_TOKENS, seed=False, temperature=False, usage=True)
    assert (model.ability, learned) == (expected, [expected])


async def test_what_was_learned_before_is_not_found_out_again() -> None:
    known = Ability(Form.TEXT, usage=True)
    learned: list[Ability] = []
    async with ScriptedJudge() as server, a_model(server, known, learned) as model:
        await model.ask(REQUEST)
    assert "response_format" not in server.asked[0].body
    assert (len(server.asked), learned) == (1, [])


async def test_an_endpoint_that_takes_less_than_it_did_is_believed_when_it_says_so() -> None:
    async with ScriptedJudge(formats=frozenset()) as server, a_model(server, Ability(usage=True)) as model:
        await model.ask(REQUEST)
    assert model.ability == Ability(Form.TEXT, usage=True)


async def test_whether_it_counts_tokens_is_learned() -> None:
    async with ScriptedJudge([Canned(usage=False), Canned()]) as server, a_model(server) as model:
        await model.ask(REQUEST)
        assert model.ability == replace(ANY, usage=False)
        await model.ask(REQUEST)
        assert model.ability == replace(ANY, usage=True)


async def test_a_refused_key_is_no_reason_to_try_something_milder() -> None:
    from pipeline.errors import ConfigurationError  # noqa: PLC0415

    async with ScriptedJudge(lambda _: failing(400, code="invalid_api_key")) as server, a_model(server) as model:
        with pytest.raises(ConfigurationError):
            await model.ask(REQUEST)
        assert (len(server.asked), model.ability) == (1, None)
