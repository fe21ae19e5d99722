"""The quick-start pages as text: they can be pasted, and what they tell to install is what their tests run with."""

import re

import pytest
from quickstarts.environments import versions
from quickstarts.pages import NAMES, PAGES, page
from quickstarts.playing import RECEIVER
from quickstarts.scenarios import SCENARIOS, TRAITS

INDEX = (PAGES / "README.md").read_text(encoding="utf-8")


def test_the_index_lists_every_page() -> None:
    assert set(re.findall(r"\]\(([\w-]+)\.md\)", INDEX)) == set(NAMES)
    assert len(NAMES) >= 10


def test_every_page_is_played_to() -> None:
    assert sorted(TRAITS) == NAMES
    assert {key.partition(".")[0] for key in SCENARIOS} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_page_tells_to_install_is_pinned(name: str) -> None:
    pinned = versions(name)
    for package in page(name).packages:
        told = re.fullmatch(r"(@?[^@=\[]+)(?:\[[\w,]+\])?(?:@|==|\Z)(.*)", package)
        assert told is not None
        assert pinned[told[1]].startswith(told[2])


@pytest.mark.parametrize("name", NAMES)
def test_a_page_sends_to_where_up_listens(name: str) -> None:
    exports = page(name).exports
    endpoints = {name: value for name, value in exports.items() if name.endswith("_ENDPOINT")}
    assert set(endpoints.values()) <= {RECEIVER, f"{RECEIVER}/v1/traces"}
    assert len(endpoints) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_page_names_the_settings_that_switch_content(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    for setting, value in TRAITS[name].no_content.items():
        assert f"{setting}={value or ''}" in text


@pytest.mark.parametrize("name", [name for name in NAMES if page(name).language == "python"])
def test_what_is_pasted_is_python(name: str) -> None:
    for heading, program in page(name).programs.items():
        compile(program, f"{name}: {heading}", "exec")
