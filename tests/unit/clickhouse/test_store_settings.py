"""Where the store is: a folder or a server, never both, and no password in a file."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.config.store import StoreSettings

VARIABLE = "CH_PASSWORD"


def test_with_no_configuration_the_store_is_a_folder_where_one_stands() -> None:
    settings = StoreSettings()
    assert (settings.path, settings.url, settings.database) == (Path("tracegrade-data"), None, "tracegrade")


def test_a_server_is_an_address_a_user_and_the_name_of_a_variable() -> None:
    settings = StoreSettings(url="https://ann@clickhouse.example.com:8443", password_env=VARIABLE, database="quality")
    assert (settings.url, settings.password_env, settings.database) == (
        "https://ann@clickhouse.example.com:8443",
        VARIABLE,
        "quality",
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "clickhouse://host:9000"}, "write http://user@host:8123"),
        ({"url": "http://"}, "write http://user@host:8123"),
        ({"url": "http://ann:secret@host:8123"}, "name an environment variable as password_env"),
        ({"url": "http://host:8123/quality"}, "the database has a key of its own"),
        ({"url": "http://host:8123?database=quality"}, "the database has a key of its own"),
        ({"url": "http://host:8123", "path": "data"}, "write path for a folder or url for a server"),
        ({"password_env": "CH_PASSWORD"}, "write its url too"),
        ({"url": "http://host:8123", "password_env": ""}, "at least 1 character"),
        ({"database": "drop table"}, "String should match pattern"),
        ({"folder": "data"}, "Extra inputs are not permitted"),
    ],
)
def test_a_mistake_is_answered_with_what_to_write_instead(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        StoreSettings(**given)


def test_the_password_is_not_repeated_in_the_answer_to_the_mistake() -> None:
    with pytest.raises(ValidationError) as caught:
        StoreSettings(url="http://ann:secret@host:8123")
    assert "secret" not in str(caught.value)
