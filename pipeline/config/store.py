"""Where everything is remembered: a folder with an embedded ClickHouse, or a ClickHouse server."""

from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from pipeline.model.settings import Settings


def _server(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(
            f"{url!r} is not the address of a ClickHouse server; write http://user@host:8123 or https://user@host:8443"
        )
    if parts.password is not None:
        raise ValueError(
            "write no password into a file: leave it out of the url and name an environment variable as password_env"
        )
    if parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise ValueError("write only the server's address as url; the database has a key of its own, database")
    return url


class StoreSettings(Settings):
    """The store. A folder belongs to one process; a server is for several."""

    # An address that is refused for its password must not be shown with it.
    model_config = ConfigDict(hide_input_in_errors=True)

    path: Path = Path("tracegrade-data")
    """The folder of the embedded engine; it is made where there is none."""
    url: Annotated[str, AfterValidator(_server)] | None = None
    """A ClickHouse server, such as ``http://user@host:8123``, instead of a folder."""
    password_env: str | None = Field(default=None, min_length=1)
    """Name of the environment variable that holds the server's password."""
    database: str = Field(default="tracegrade", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The database that holds the tables; it is made where there is none."""
    min_free: Annotated[int, Field(ge=0)] = 256 * 1024 * 1024
    """Bytes that are kept free on the folder's disk: with less nothing is accepted."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.url is not None and "path" in self.model_fields_set:
            raise ValueError("path and url are two stores: write path for a folder or url for a server")
        if self.url is None and self.password_env is not None:
            raise ValueError("password_env is the password of a server: write its url too, or leave password_env out")
        return self
