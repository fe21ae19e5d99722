"""A run of ten thousand steps in a real browser, and pages behind a key."""

import time
from pathlib import Path

import pytest
from browser.chromium import Browser
from browser.shop import a_plain_run, a_sender, a_shop
from serving import an_up, get, scored

pytestmark = [pytest.mark.browser, pytest.mark.real]
STEPS = 10_000
PATIENCE_S = 60
"""What a page of the run may take on a machine that is busy with other tests; on an idle one it is a second or two."""
KEYS = {"acme": "key-of-acme", "other": "key-of-other"}


@pytest.fixture(scope="module")
def big_url(tmp_path_factory: pytest.TempPathFactory) -> object:
    with a_shop(tmp_path_factory.mktemp("big"), plain=1, long=STEPS) as shop:
        yield f"{shop.url}/runs/{shop.run('long')}"


def test_each_page_of_ten_thousand_steps_comes_in_time_and_is_small(big_url: str) -> None:
    for query in ("", "?steps=25", "?steps=51", "?steps=9999"):
        begun = time.monotonic()
        page = get(f"{big_url}{query}")
        took = time.monotonic() - begun
        assert page.status == 200
        assert took < PATIENCE_S, query
        assert len(page.text) < 1 << 20, query


def test_the_last_of_ten_thousand_steps_is_one_click_from_its_score(browser: Browser, big_url: str) -> None:
    browser.open(big_url)
    assert browser.texts(".steps .number") == [str(number) for number in range(1, 201)]
    browser.one("#score-no_deletion").find_element("link text", "in its step").click()
    (target,) = browser.all(".steps > li:target")
    assert target.find_element("css selector", "strong").text == "delete_customer"
    assert target.find_element("css selector", ".number").text == str(STEPS + 1)


def test_a_browser_shows_the_runs_of_its_key_and_no_others(browser: Browser, tmp_path: Path) -> None:
    config = tmp_path / "tracegrade.yaml"
    config.write_text(
        f"store: {{path: {tmp_path / 'data'}}}\nassemble: {{quiet_period: 300ms}}\nagents: {{default: {{rubric: null}}}}\n"
        f"receiver: {{http_port: 0, grpc_port: 0, keys: {{acme: [{KEYS['acme']}], other: [{KEYS['other']}]}}}}\nproject: acme\n"
    )
    with an_up(config, tmp_path / "data") as up:
        for project, key in KEYS.items():
            with a_sender(up, "1", "production", key) as tracer:
                a_plain_run(tracer, f"agent-of-{project}", minutes_ago=1, tools=("lookup_order",))
        ids = {project: scored(up, 1, key)["runs"][0]["run_id"] for project, key in KEYS.items()}
        browser.open(f"{up.http}/runs")
        assert "agent-of" not in browser.text()
        for project, other in (("acme", "other"), ("other", "acme")):
            address = up.http.replace("://", f"://anybody:{KEYS[project]}@")
            browser.open(f"{address}/runs")
            assert browser.texts("tbody .id a") == [ids[project][:8]]
            assert f"agent-of-{other}" not in browser.driver.page_source
            browser.open(f"{address}/runs/{ids[project]}")
            assert browser.one("h1").text.startswith(f"agent-of-{project}")
            for path in (
                f"/runs/{ids[other]}",
                f"/runs/{ids[other]}/value?of=request",
                f"/runs?run={ids[other]}&agent=agent-of-{other}",
            ):
                browser.open(f"{address}{path}")
                assert "where is order" not in browser.text().lower()
                assert browser.all("tbody .id a") == []
