"""How a judge is configured, what it has earned, and which family a model is of."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.errors import ConfigurationError
from pipeline.judges import calibration
from pipeline.judges.family import family, related
from pipeline.judges.openai import OpenAIModel
from pipeline.judges.settings import JudgeSettings, Price
from pipeline.model.result import Authority
from pipeline.model.time import MINUTE

HASH = "0123456789abcdef"


def test_without_settings_nothing_is_judged_and_nothing_decides() -> None:
    settings = JudgeSettings()
    assert settings.base_url is None
    assert settings.uncalibrated == "show"
    assert settings.deadline == 15 * MINUTE
    with pytest.raises(ConfigurationError, match=r"judge\.base_url"):
        OpenAIModel(settings, {})


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"base_url": "api.openai.com", "model": "m"}, "is not an address"),
        ({"base_url": "ftp://example.org", "model": "m"}, "is not an address"),
        ({"base_url": "https://me:secret@example.org/v1", "model": "m"}, "put the key into the variable"),
        ({"base_url": "https://example.org/v1"}, "write the id of the model"),
        ({"seeds": (1, 1, 2)}, "the seeds are not all different"),
        ({"seeds": (1, 2)}, "seeds"),
        ({"uncalibrated": "maybe"}, "uncalibrated"),
        ({"concurrency": 0}, "concurrency"),
        ({"temperature": -1}, "temperature"),
        ({"price": {"input_per_million": 1}}, "output_per_million"),
        ({"api_key": "sk-1"}, "api_key"),
        ({"requests_per_minute": 0}, "requests_per_minute"),
        ({"tokens_per_minute": -1}, "tokens_per_minute"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"budget": {"per_day": -1}}, "per_day"),
    ],
)
def test_a_mistake_in_the_settings_is_refused(written: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as mistake:
        JudgeSettings(**written)
    assert message in str(mistake.value)


def test_a_judgment_costs_what_the_specification_works_out() -> None:
    price = Price(input_per_million=Decimal("0.75"), output_per_million=Decimal("2.55"))
    call = price.cost(3000, 300)
    assert call == Decimal("0.003015")
    assert 5 * call == Decimal("0.015075")
    assert 9 * call == Decimal("0.027135")


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "calibration.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        f'- {{contract: "{HASH}", dimension: tone, authority: alone}}\n',
        f'[{{"contract": "{HASH}", "dimension": "tone", "authority": "alone"}}]',
    ],
)
def test_authority_is_earned_by_contract_and_dimension(tmp_path: Path, text: str) -> None:
    known = calibration.load(written(tmp_path, text))
    assert known.authority_of(HASH, "tone") is Authority.ALONE
    assert known.authority_of(HASH, "format") is Authority.UNCALIBRATED
    assert known.authority_of(HASH[::-1], "tone") is Authority.UNCALIBRATED


def test_without_a_calibration_everything_is_uncalibrated() -> None:
    assert calibration.load(None).authority_of(HASH, "tone") is Authority.UNCALIBRATED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {contract: 1234567890123456, dimension: tone, authority: alone}", "16 hex digits in quotes"),
        ('- {contract: "0123", dimension: tone, authority: alone}', "16 hex digits in quotes"),
        (f'- {{contract: "{HASH}", dimension: tone, authority: expert}}', "authority"),
        (f'- {{contract: "{HASH}", dimension: tone}}', "authority"),
        (f'- {{contract: "{HASH}", dimension: tone, authority: alone, by: me}}', "by"),
        (
            f'- &one {{contract: "{HASH}", dimension: tone, authority: alone}}\n- {{<<: *one, authority: frozen}}',
            "two authorities",
        ),
        ("contract: x", "list"),
        ("", "list"),
        ("[", "cannot be read"),
    ],
)
def test_a_calibration_that_is_not_clear_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as mistake:
        calibration.load(written(tmp_path, text))
    assert message in str(mistake.value)


def test_a_calibration_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        calibration.load(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4.1-mini", "openai"),
        ("azure/gpt-4o", "openai"),
        ("o3-mini", "openai"),
        ("claude-sonnet-4-5", "anthropic"),
        ("anthropic.claude-3-haiku", "anthropic"),
        ("meta-llama/Llama-3.1-8B-Instruct", "meta"),
        ("google/gemma-2-9b", "google"),
        ("Qwen/Qwen3-8B", "alibaba"),
        ("deepseek-r1-distill-qwen-7b", "deepseek"),
        ("house-model", ""),
        ("scripted-judge-1", ""),
        ("demo4o", ""),
        ("", ""),
    ],
)
def test_a_family_is_read_from_the_id(model: str, name: str) -> None:
    assert family(model) == name


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("gpt-4o", "o3", True), ("gpt-4o", "claude-3", False), ("mine", "mine", True), ("mine", "yours", False), ("", "", False)],
)
def test_models_of_one_family_are_related(one: str, other: str, same: bool) -> None:
    assert related(one, other) is same
