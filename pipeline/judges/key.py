"""Key: the secret of a judge's endpoint, from the environment or from a file, and kept out of all that is said."""

from collections.abc import Mapping
from typing import Final

from pipeline.errors import ConfigurationError
from pipeline.judges.settings import JudgeSettings

NONE: Final = "none"
"""What is sent where there is no key: the client insists on one, and an endpoint that wants one will refuse this."""
_SHORTEST: Final = 8
"""Characters of a key that is looked for in replies; a shorter one stands in too many words."""


class Key:
    """The key as it is now: a file is read for each call, so that a new key is taken up without a restart."""

    def __init__(self, settings: JudgeSettings, environ: Mapping[str, str]) -> None:
        self._file = settings.api_key_file
        self._fixed = environ.get(settings.api_key_env, "").strip()
        self._last = ""
        self._at = settings.at
        self.where: str = str(self._file or settings.api_key_env or f"a variable, and its name into {settings.at}.api_key_env")
        """Where a person puts another one."""

    def read(self) -> str:
        """Return the key.

        Raises:
            ConfigurationError: the file cannot be read.
        """
        if self._file is None:
            self._last = self._fixed
        else:
            try:
                self._last = self._file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigurationError(
                    f"{self._at}.api_key_file: {self._file} cannot be read; mount it, or correct it"
                ) from error
        return self._last or NONE

    def hidden_in(self, text: str) -> str:
        """Return a text about an error without the key: endpoints have been seen to repeat the key that they refuse."""
        return text.replace(self._last, "***") if self._last else text

    def masked(self, body: bytes) -> bytes:
        """Return what an endpoint answered without the key: replies are stored and shown."""
        return body.replace(self._last.encode(), b"***") if len(self._last) >= _SHORTEST else body
