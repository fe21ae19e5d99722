"""Contract: the version of everything that made a score (spec section 7)."""

from typing import Any

import msgspec

from pipeline.model import ids


class Contract(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a result was made under. Its hash keys results, purchases and calibration.

    A code check fills ``kind``, ``dimension`` and ``check_definition``; a judge the rest. What is left at its default
    is not hashed, so that a field added later changes the hash of no stored contract.
    """

    kind: str
    dimension: str
    rubric_hash: str = ""
    prompt_hash: str = ""
    model: str = ""
    """Id of the judge's model as requested; what was served is recorded beside it and does not change the contract."""
    models: tuple[str, ...] = ()
    """Ids of a panel's models, in the order in which they are asked; ``model`` is empty then."""
    decoding: dict[str, Any] = {}
    """Temperature and seeds of the calls."""
    parser_version: str = ""
    transcript_version: str = ""
    evidence_schema: str = ""
    """The rule by which evidence is accepted."""
    aggregation: str = ""
    """The rule by which several votes become one score."""
    check_definition: dict[str, Any] = {}
    """Limits, tolerances, normalisation, what counts as a duplicate."""

    @property
    def judges(self) -> tuple[str, ...]:
        """Ids of all models that are asked under it; none for a check."""
        return self.models or ((self.model,) if self.model else ())

    @property
    def canonical(self) -> str:
        """The contract as JSON: sorted keys, no spaces, UTF-8."""
        return _encode(self).decode()

    @property
    def hash(self) -> str:
        """blake2b-64 of the canonical JSON: 16 hex digits."""
        return ids.digest(8, self.canonical)


_encode = msgspec.json.Encoder(order="sorted").encode
