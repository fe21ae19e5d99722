"""A few lines of aliases that stand for billions of values are refused before anybody follows them, wherever YAML is read."""

from pathlib import Path

import pytest

from pipeline.config import rubrics
from pipeline.config.check import check
from pipeline.config.yaml_file import YamlFile
from pipeline.errors import ConfigurationError
from pipeline.judges import calibration

LETTERS = "abcdefghij"
LISTS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{LETTERS[at]}'] * 9)}]\n" for at, name in enumerate(LETTERS[1:])
)
"""Nine letters, nine times these, nine times those: the list on line n holds about 9**n values."""
MERGES = "a: &a {a: 1}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{LETTERS[at]}'] * 9)}], {name}: 1}}\n" for at, name in enumerate(LETTERS[1:])
)

pytestmark = pytest.mark.timeout(30)


@pytest.mark.parametrize("text", [LISTS, MERGES], ids=["lists", "merged mappings"])
def test_it_is_told_by_the_line_where_it_is_too_much(text: str, tmp_path: Path) -> None:
    (path := tmp_path / "tracegrade.yaml").write_text(text)
    # 9**5 is less than 100,000, and 9**6 is more
    assert check(path, {}).errors == (
        f"{path}:6: too many aliases: they stand for more than 100000 values; write out what is meant",
    )


def test_neither_a_rubric_nor_a_calibration_is_expanded(tmp_path: Path) -> None:
    for name, text in (("lists", LISTS), ("merges", MERGES)):
        (path := tmp_path / f"{name}.yaml").write_text(text)
        with pytest.raises(ConfigurationError, match=rf"{name}\.yaml:6: too many aliases"):
            rubrics.load(path)
        with pytest.raises(ConfigurationError, match=rf"{name}\.yaml:6: too many aliases"):
            calibration.load(path)


def test_a_loop_of_many_aliases_is_told_as_what_it_is() -> None:
    loop = "a: &a [*a, *a, *a, &b [*a, *a, *b, *b], *b, *b]\n"
    assert {one.what for one in YamlFile(loop).mistakes} == {"refers to itself; write the value out"}
    YamlFile(loop).conceal("text", ("a",))


def test_a_file_that_is_large_without_aliases_and_one_that_repeats_a_little_are_read() -> None:
    large = YamlFile(f"a: [{'1, ' * 3_000}1]\n")
    assert (large.unreadable, len(large.data["a"])) == (False, 3_001)
    shared = YamlFile(f"a: &a [{'1, ' * 99}1]\nb: [{'*a, ' * 99}*a]\n")
    assert (shared.unreadable, len(shared.data["b"])) == (False, 100)
