"""References: a file of requests with their right answers in, the answer to each request out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from pipeline.errors import ConfigurationError
from pipeline.scorers.reference.task import folded

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    request: _Text
    answer: _Text


def load(path: Path | None) -> Mapping[str, str]:
    """Read a file of references, one JSON object with ``request`` and ``answer`` a line; by folded request, its answer. No file holds none.

    Raises:
        ConfigurationError: it cannot be read, a line is none, or two lines answer one request differently.
    """
    if path is None:
        return {}
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the references {path} cannot be read: {error}") from error
    answers: dict[str, str] = {}
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            line = _Line.model_validate_json(text)
        except ValidationError as error:
            raise ConfigurationError(f"{path}:{number}: {_explain(error)}") from error
        if answers.setdefault(folded(line.request), line.answer) != line.answer:
            raise ConfigurationError(f"{path}:{number}: this request has another answer further up; keep one of the two")
    return answers


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    what = f"{where}: {first['msg']}" if where else first["msg"]
    return f'{what}; write {{"request": "what is asked", "answer": "what is right"}} on each line'
