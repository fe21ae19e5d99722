"""Rubrics: a path, or the name of one that ships, in; a Rubric out, or every mistake by line."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from pipeline.config.explain import explain, overlooked
from pipeline.config.mistake import Mistake, spoken
from pipeline.config.rubric_rules import findings, foreign
from pipeline.config.tracegrade import SHIPPED_RUBRICS, AgentSettings
from pipeline.config.yaml_file import YamlFile
from pipeline.errors import ConfigurationError
from pipeline.judges.rubric_file import SHIPPED, CriteriaFile, RubricFile
from pipeline.model.risk import at_risk
from pipeline.model.rubric import Rubric


def rubric_of(entry: AgentSettings) -> Rubric | None:
    """Return the rubric of an agent entry, with the bar and the gates of its risk; None where nothing is judged.

    Raises:
        ConfigurationError: it cannot be had as written.
    """
    return at_risk(load(entry.rubric), entry.risk) if entry.rubric is not None else None


def load(path_or_name: str | Path) -> Rubric:
    """Read a rubric: a shipped one by its name, any other by its path.

    Raises:
        ConfigurationError: with every mistake, where it stands, and what to write instead.
    """
    path = _find(path_or_name)
    try:
        # A rubric is shared and hashed: what it says does not depend on the environment.
        file = YamlFile(path.read_text(encoding="utf-8-sig"), environment=None)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    rubric = _read(file)
    if isinstance(rubric, Rubric):
        return rubric
    raise ConfigurationError("\n".join([f"{path} is not a rubric:", *(f"  {one.at(path.name)}" for one in rubric)]))


def _find(path_or_name: str | Path) -> Path:
    if str(path_or_name) in SHIPPED_RUBRICS:
        return SHIPPED / f"{path_or_name}.yaml"
    path = Path(path_or_name)
    if path.is_dir():
        raise ConfigurationError(f"{path} is a folder; write the path of a file, or one of: {', '.join(SHIPPED_RUBRICS)}")
    if not path.is_file():
        raise ConfigurationError(
            f"there is no rubric {path_or_name}; write the path of a file, or one of: {', '.join(SHIPPED_RUBRICS)}"
        )
    return path


def _read(file: YamlFile) -> Rubric | list[Mistake]:
    if file.unreadable:
        return file.mistakes
    data = {} if file.data is None else file.data
    of_criteria = isinstance(data, Mapping) and "criteria" in data
    model: type[RubricFile | CriteriaFile] = CriteriaFile if of_criteria else RubricFile
    mistakes = [*file.mistakes, *overlooked(model, file)]
    mistakes += [_told(file, *one) for one in (foreign(data) if of_criteria else ())]
    try:
        written = model.model_validate(data)
    except ValidationError as error:
        told = {(one.line, one.where) for one in mistakes}
        return sorted([*mistakes, *(one for one in explain(error, model, file) if (one.line, one.where) not in told)])
    mistakes += [_told(file, *one) for one in findings(written)]
    return sorted(mistakes) or written.rubric()


def _told(file: YamlFile, at: tuple[str | int, ...], what: str) -> Mistake:
    return Mistake(file.line(at), spoken(at), what)
