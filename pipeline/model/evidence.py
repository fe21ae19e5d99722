"""Evidence: what a record source was asked about a run, and what it answered. A fact, stored before the run's owner folds it (docs/adr/0008)."""

from enum import StrEnum
from hashlib import blake2b

import msgspec

from pipeline.model import ids


class Found(StrEnum):
    """What became of a read. That there is no record is something that was read; that nothing could be read is not."""

    RECORD = "record"
    """The source answered with something."""
    ABSENT = "absent"
    """The source answered that there is no such record."""
    FAILED = "failed"
    """It was down, slow, or answered badly."""


class Question(msgspec.Struct, frozen=True, order=True):
    """What a source is asked about a run."""

    project: str
    trace_id: str
    run_id: str
    source: str
    contract: str
    """Names what the source is and how it is asked, 16 hex digits."""
    key: str
    """Its parameters, as JSON with sorted keys."""
    calls: str
    """Names the calls of the run, 32 hex digits: a run that turns out to have made others is asked about anew."""

    @property
    def id(self) -> str:
        """The same question about the same calls has one answer: 32 hex digits."""
        return ids.digest(16, self.project, self.run_id, self.source, self.contract, self.key, self.calls)


class Evidence(Question, frozen=True):
    """What a source answered. Of two answers to one question the earlier counts."""

    found: Found
    read_ns: int
    """When it answered, or was given up."""
    body: str = ""
    """What was read, as JSON with sorted keys, decimals as they were written; empty unless something was."""
    error: str = ""
    """Why it could not be read; empty where it was."""
    content_hash: str = ""
    """Names all of it, the time too; set by :func:`seal`."""


_encode = msgspec.msgpack.Encoder(order="sorted").encode


def answered(question: Question, found: Found, read_ns: int, *, body: str = "", error: str = "") -> Evidence:
    """Return the sealed answer to a question."""
    fields = {name: getattr(question, name) for name in Question.__struct_fields__}
    return seal(Evidence(**fields, found=found, read_ns=read_ns, body=body, error=error))


def seal(evidence: Evidence) -> Evidence:
    """Return the evidence with its content hash: blake2b-128 of everything else."""
    bare = msgspec.structs.replace(evidence, content_hash="")
    return msgspec.structs.replace(evidence, content_hash=blake2b(_encode(bare), digest_size=16).hexdigest())
