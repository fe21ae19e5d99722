"""The golden set as a file."""

import json
from pathlib import Path

import msgspec
import pytest

from pipeline.model.golden import GoldenCase
from sinks.golden.files import file_of, line, write


def a_case(case_id: str = "a1", **fields: str) -> GoldenCase:
    return msgspec.convert(
        {"id": case_id, "project": "shop", "agent": "refunds", "input": "Hi", "state": "candidate", "split": "development"}
        | {"representative": "r1", "runs": 1}
        | fields,
        GoldenCase,
    )


def test_an_export_has_one_case_a_line_by_id(tmp_path: Path) -> None:
    path = tmp_path / "new" / "golden.jsonl"
    assert write(path, [a_case("b2"), a_case("a1"), a_case("c3")]) == 3
    lines = path.read_text().splitlines()
    assert [json.loads(each)["id"] for each in lines] == ["a1", "b2", "c3"]
    assert [msgspec.json.decode(each, type=GoldenCase) for each in lines] == [a_case("a1"), a_case("b2"), a_case("c3")]


def test_the_order_of_cases_does_not_change_a_byte(tmp_path: Path) -> None:
    cases = [a_case("b2"), a_case("a1")]
    write(tmp_path / "one", cases)
    write(tmp_path / "other", reversed(cases))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_line_has_what_a_case_is_made_of() -> None:
    assert set(json.loads(line(a_case()))) >= {
        *("id", "input", "expected", "reference_tools", "difficulty", "category", "kind", "provenance", "state", "split"),
        *("project", "agent", "representative", "runs", "answer", "why"),
    }


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "a\u2028b\u2029c\x85d\x0be\x1cf", "\u202edesrever", "日本 ü", "\x7f\x9b31m"])
def test_hostile_text_stays_one_readable_line_and_comes_back_whole(text: str) -> None:
    written = line(a_case(input=text))
    assert len(written.splitlines()) == 1
    assert written.isprintable()
    assert json.loads(written)["input"] == text


def test_a_later_export_replaces_the_former_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    write(path, [a_case("a1"), a_case("b2")])
    write(path, [a_case("b2")])
    assert len(path.read_text().splitlines()) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_an_export_that_breaks_leaves_the_former_one(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    write(path, [a_case("a1")])
    before = path.read_bytes()
    with pytest.raises(UnicodeEncodeError):
        write(path, [a_case("a1"), a_case("b2", input="\ud800")])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_in_place_of_the_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    path = tmp_path / "golden.jsonl"
    path.symlink_to(victim)
    write(path, [a_case()])
    assert victim.read_text() == "untouched"
    assert not path.is_symlink()


def test_the_file_is_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    write(path, [a_case()])
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "project", ["../../x", "a/b", "C:\\x", "#", "?", "%2e%2e", "\0", "", ".", "Shop", "con", "x" * 300, "\ud800"]
)
def test_a_project_of_any_name_has_a_file_in_the_folder(tmp_path: Path, project: str) -> None:
    path = file_of(tmp_path, project)
    assert path.resolve().parent == tmp_path.resolve()
    assert write(path, [a_case()]) == 1


def test_projects_do_not_share_a_file(tmp_path: Path) -> None:
    names = ["shop", "Shop", "SHOP", "shop/", "../shop"]
    assert len({file_of(tmp_path, name).name.lower() for name in names}) == len(names)
    assert file_of(tmp_path, "shop").name == "golden-shop.jsonl"
