"""What a judge has earned by agreeing with people: a file of (contract, dimension, authority) in, an authority out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipeline.aliases import TOO_MANY, too_many
from pipeline.errors import ConfigurationError
from pipeline.model.result import Authority


class Calibration(msgspec.Struct, frozen=True):
    """Authorities by (contract hash, dimension)."""

    authorities: Mapping[tuple[str, str], Authority] = {}

    def authority_of(self, contract_hash: str, dimension: str) -> Authority:
        """Return what was earned under exactly this contract; nothing carries over from another one."""
        return self.authorities.get((contract_hash, dimension), Authority.UNCALIBRATED)


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    contract: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    dimension: str
    authority: Authority


_entries = TypeAdapter(list[_Entry])


def load(path: Path | None) -> Calibration:
    """Read a calibration file, YAML or JSON; no file is no calibration.

    Raises:
        ConfigurationError: where an entry cannot be read or two entries contradict each other.
    """
    if path is None:
        return Calibration()
    try:
        text = path.read_text(encoding="utf-8-sig")
        if line := too_many(YAML(typ="safe", pure=True).compose(text)):
            raise ConfigurationError(f"the calibration {path}:{line}: {TOO_MANY}")
        entries = _entries.validate_python(YAML(typ="safe", pure=True).load(text))
    except ValidationError as error:
        raise ConfigurationError(f"the calibration {path} is not right:\n{_explain(error)}") from error
    except (OSError, ValueError, RecursionError, YAMLError) as error:
        raise ConfigurationError(f"the calibration {path} cannot be read: {error}") from error
    authorities: dict[tuple[str, str], Authority] = {}
    for entry in entries:
        key = (entry.contract, entry.dimension)
        if authorities.setdefault(key, entry.authority) is not entry.authority:
            raise ConfigurationError(
                f"the calibration {path} gives {entry.dimension} two authorities under {entry.contract}; keep one"
            )
    return Calibration(authorities)


def _explain(error: ValidationError) -> str:
    lines = [f"  entry {'.'.join(map(str, part['loc'])) or 'list'}: {part['msg']}" for part in error.errors()]
    if any("contract" in part["loc"] for part in error.errors()):
        lines.append('  A contract is 16 hex digits in quotes, such as contract: "0123456789abcdef".')
    return "\n".join(lines)
