"""Further models and pairings by family: what may be written, and whose key, limits and price each model has."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.config.judge_price import priced
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.judges.key import Key
from pipeline.judges.settings import JudgeSettings
from pipeline.model.time import SECOND

HERE, THERE = "http://127.0.0.1:1/v1", "https://there.example/v1"


def judge(**fields: Any) -> JudgeSettings:
    return JudgeSettings.model_validate({"base_url": HERE, "model": "gpt-4.1", **fields})


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"models": {"m": {"base_url": "there"}}}, "is not an address"),
        ({"models": {"m": {"base_url": "https://me:secret@there.example"}}}, "put the key into the variable"),
        ({"models": {"m": {"api_key_env": "KEY"}}}, "a key is written and no base_url"),
        ({"models": {"m": {"api_key_file": "key"}}}, "a key is written and no base_url"),
        ({"models": {"m": {"api_key": "sk-1"}}}, "api_key"),
        ({"models": {"m": {"requests_per_minute": 0}}}, "requests_per_minute"),
        ({"models": {"m": {"max_output_tokens": 1}}}, "max_output_tokens"),
        ({"models": {"m": {"price": {"input_per_million": 1}}}}, "output_per_million"),
        ({"models": {"m, n": {}}}, "models"),
        ({"models": {"gpt-4.1": {}}}, "models names gpt-4.1, which is judge.model"),
        ({"models": {"m": {}}, "base_url": None}, "models are set and base_url is not"),
        (
            {"models": {"m": {"base_url": THERE}}, "allowed_hosts": ["127.0.0.1"]},
            "models.m.base_url is on there.example, and allowed_hosts are 127.0.0.1",
        ),
        ({"pairing": {"openai": "m"}}, "pairing.openai: no endpoint is configured for m; write it under judge.models"),
        ({"pairing": {"openai": "gpt-4.1"}}, "pairing.openai is gpt-4.1, which is of that family itself"),
        ({"pairing": {"openia": "gpt-4.1"}}, "openia is no family of models; write one of openai, anthropic,"),
    ],
)
def test_a_mistake_is_refused_with_what_to_write(written: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as mistake:
        judge(**written)
    assert message in str(mistake.value)


def test_a_model_at_the_first_address_has_its_key_and_limits_and_no_price_of_another() -> None:
    first = judge(
        price={"input_per_million": 1, "output_per_million": 1},
        requests_per_minute=60,
        timeout="5s",
        models={"m": {}},
    )
    one = first.of("m")
    assert (one.model, one.base_url, one.api_key_env, one.requests_per_minute) == ("m", HERE, "OPENAI_API_KEY", 60)
    assert (one.timeout, one.price, one.at) == (5 * SECOND, None, "judge.models.m")
    assert (first.of("gpt-4.1"), first.at) == (first, "judge")


@pytest.mark.parametrize(
    ("written", "key"), [({}, ""), ({"api_key_env": "THEIRS"}, "theirs"), ({"api_key_file": "key"}, "from a file")]
)
def test_a_key_is_for_the_address_that_it_was_written_for(written: dict[str, Any], key: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from a file\n")
    if "api_key_file" in written:
        written = {"api_key_file": tmp_path / "key"}
    one = judge(requests_per_minute=60, tokens_per_minute=60, models={"m": {"base_url": THERE, **written}}).of("m")
    assert (one.base_url, one.requests_per_minute, one.tokens_per_minute) == (THERE, None, None)
    held = Key(one, {"OPENAI_API_KEY": "ours", "THEIRS": "theirs"})
    assert held.read() == (key or "none")
    assert held.where == {
        "": "a variable, and its name into judge.models.m.api_key_env",
        "theirs": "THEIRS",
    }.get(key, str(tmp_path / "key"))


def test_a_key_of_its_own_at_the_first_address_takes_the_place_of_the_first_key(tmp_path: Path) -> None:
    one = judge(api_key_file=tmp_path / "ours", models={"m": {"base_url": HERE, "api_key_env": "THEIRS"}}).of("m")
    assert Key(one, {"OPENAI_API_KEY": "ours", "THEIRS": "theirs"}).read() == "theirs"


def test_each_model_has_its_own_price_and_that_of_the_table_where_none_is_written() -> None:
    written = {"gpt-4o-mini": {}, "house": {"price": {"input_per_million": 7, "output_per_million": 7}}, "nobody": {}}
    first = priced(TracegradeSettings(judge=judge(models=written)))
    prices = {name: price.input_per_million if (price := first.of(name).price) else None for name in first.ids}
    assert prices == {"gpt-4.1": Decimal(2), "gpt-4o-mini": Decimal("0.15"), "house": Decimal(7), "nobody": None}
