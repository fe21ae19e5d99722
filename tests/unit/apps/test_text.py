import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from pipeline.apps.text import as_json, one_line, visible

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
TURNS = {"\u061c", "\u200e", "\u200f", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}


def acts(character: str) -> bool:
    """Whether a terminal or a reader's eye is told to do something by it."""
    return (unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} and character not in "\n\t") or character in TURNS


@given(ANY_TEXT)
def test_nothing_that_acts_on_a_terminal_is_left(text: str) -> None:
    assert not any(map(acts, visible(text)))


@given(st.text(st.characters(exclude_categories=("C", "Z")), max_size=60))
def test_text_that_does_nothing_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
        lambda part: st.lists(part) | st.dictionaries(st.text(max_size=5), part),
    )
)
def test_json_means_the_same_and_does_nothing(value: object) -> None:
    written = as_json(value)
    assert json.loads(written) == value
    assert not any(map(acts, written))


def test_what_acts_is_shown() -> None:
    assert visible("a\x1b[2Jb\x9bc\u202ed\U000e0041e\r\nf\rg\th") == "a\\u001b[2Jb\\u009bc\\u202ed\\udb40\\udc41e\nf\\u000dg\th"


@given(ANY_TEXT, st.integers(1, 40))
def test_a_cell_is_one_line_of_at_most_its_length(text: str, longest: int) -> None:
    cell = one_line(text, longest)
    assert len(cell) <= longest
    assert cell.split() == cell.split(" ") or not cell
