"""Deterministic ids: the same facts always get the same name, whoever computes it.

Parts are length-prefixed before they are hashed, so that ("ab", "c") and ("a", "bc") differ.
"""

import zlib
from hashlib import blake2b
from typing import Final

BUCKETS: Final = 1024


def digest(size: int, *parts: str) -> str:
    """Return ``size`` bytes of blake2b over the length-prefixed parts, as lower-case hex."""
    state = blake2b(digest_size=size)
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        state.update(len(raw).to_bytes(8, "big"))
        state.update(raw)
    return state.hexdigest()


def run_id(project: str, trace_id: str, head_span_id: str) -> str:
    """Name a run by its head: 32 hex digits (design section 3)."""
    return digest(16, project, trace_id, head_span_id)


def cohort_id(agent: str, version: str, environment: str) -> str:
    """Name a cohort: 16 hex digits (design section 3)."""
    return digest(8, agent, version, environment)


def bucket(project: str, trace_id: str) -> int:
    """Return the bucket, in [0, 1024), whose owner writes everything about this trace."""
    return zlib.crc32(f"{len(project)}:{project}{trace_id}".encode()) % BUCKETS


def uniform(project: str, trace_id: str, salt: str) -> float:
    """Return a number in [0, 1) that depends on nothing but its arguments.

    It draws the sample, so it shares no bits with :func:`bucket` (reliability R139: sequential trace ids must not skew it).
    """
    return int(digest(8, "sample", salt, project, trace_id)[:13], 16) / 16**13
