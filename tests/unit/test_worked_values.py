"""Every worked value of the scoring specification; ``make worked`` prints them."""

import pytest
from worked import table
from worked.row import Worked

ROWS = table.table()


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.section}-{row.words}" for row in ROWS])
def test_a_worked_value_is_what_the_product_says(row: Worked) -> None:
    assert row.found() == row.by_hand


def test_what_is_not_so_is_printed_and_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Worked("5", "one", "a", lambda: 1, 1), Worked("5", "two", "a", lambda: 2, 3)]
    monkeypatch.setattr(table, "table", lambda: rows)
    assert table.main() == 1
    printed = capsys.readouterr().out
    assert "OK" in printed
    assert "WRONG: 2" in printed
    assert "1 of 2 OK" in printed
