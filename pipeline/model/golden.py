"""Golden cases: failures that become tests (spec section 9)."""

from typing import Any

import msgspec


class GoldenCase(msgspec.Struct, frozen=True):
    """One test case. A candidate until a person accepts it; ``withdrawn`` when none of its runs fails any more."""

    id: str
    project: str
    agent: str
    input: str
    state: str
    split: str
    """``development`` or ``held_out``, by content hash."""
    representative: str
    """The least run id of its members."""
    runs: int
    answer: str | None = None
    """What the representative answered; not what is expected."""
    expected: dict[str, Any] | None = None
    reference_tools: tuple[dict[str, Any], ...] = ()
    difficulty: str = ""
    category: str = ""
    kind: str = "happy"
    why: tuple[str, ...] = ()
    provenance: dict[str, Any] = {}
    version: int = 0


class GoldenMember(msgspec.Struct, frozen=True):
    """A run of a case. ``failing`` is false once a later version of the run passes or is retracted."""

    project: str
    case_id: str
    run_id: str
    failing: bool
    version: int
