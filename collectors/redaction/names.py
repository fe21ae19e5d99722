"""Secrets that are known by the name they go under: headers, assignments in text, attributes."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from collectors.redaction.finder import START, Finder, pattern, several
from pipeline.config.redaction import Detector

_ANYWHERE: Final = (
    r"password|passwd|passphrase|secret|api[-_ ]?key|secret[-_]?(?:access[-_]?)?key|private[-_]?key|access[-_]?key|auth[-_]?key"
    r"|(?:access|refresh|auth|id|bearer|session|api|csrf|xsrf|oauth|security|bot)[-_]?token|credentials?"
)
"""Words that say it also at the end of a longer name: ``DB_PASSWORD``."""
_ALONE: Final = r"token|pwd|cookie|set[-_]?cookie|(?:proxy[-_]?)?authorization"
"""Words that say it only when nothing is before them: not ``next_token``."""

_NAME: Final = re.compile(rf"(?:.*[-_ .:/])?(?:{_ANYWHERE})|(?:.*[.:/])?(?:x-)?(?:{_ALONE})", re.IGNORECASE | re.DOTALL)
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST_NAME: Final = 256

_IS: Final = r"""(?:\\*["'\]])*\s{0,4}(?::=|=>|[:=])\s{0,4}"""
_QUOTED: Final = r"""\\*"((?:[^"\\\x00-\x1f]|\\[^"\x00-\x1f])+)|\\*'((?:[^'\\\x00-\x1f]|\\[^'\x00-\x1f])+)"""
_BARE: Final = r"""([^\s\x00-\x1f"'\\,;&<>(){}\[\]=|*$%][^\s\x00-\x1f"'\\,;&<>(){}\[\]|]{3,})"""
_VALUE: Final = rf"(?:{_QUOTED}|{_BARE})"
_ASSIGNMENT: Final = rf"(?i)(?:(?:{_ANYWHERE})|{START}(?:token|pwd)){_IS}{_VALUE}"
_BEFORE_ALONE: Final = r"(?:^|[^a-z0-9_-]|\\[nrt]|\\u[0-9a-f]{4})(?:x-)?"
_ASSIGNED: Final = rf"""(?im)(?:{_ANYWHERE}|{_BEFORE_ALONE}(?:{_ALONE}))(?:$|[\\"'\]]*\s*(?::=|=>|[:=]))"""
"""The hint, for attributes' names too: those stand alone on their lines."""
_IN_BYTES: Final = rf"""(?i)(?:{_ANYWHERE})|(?:^|[^a-z0-9_-])(?:x-)?(?:{_ALONE})|(?:{_ALONE})[\\"'\]]*\s*(?::=|=>|[:=])"""
"""The same where the byte before may be a length: that of a name which is such a word alone looks like no letter."""
_NO_SECRET: Final = re.compile(
    rb"(?i:true|false|null|none|nil|undefined|required|optional|missing|invalid|str|string|bytes|text|unset)|[0-9]{1,9}|/.*|~.*"
)
"""What is written behind such a name and is no secret: types, constants, counts, paths."""

_HEADER: Final = rf"""(?i)authorization{_IS}(?:\\*["'])?((?:[a-z]+\s+)?[^\s\x00-\x1f"'\\,;]{{4,}})"""
_BEARER: Final = r"(?i)bearer\s+([A-Za-z0-9._~+/=-]{12,})"
_COOKIES: Final = rf"""(?i)cookie{_IS}(?:\\*["'])?([^\s\x00-\x1f=;"'\\]+=[^\x00-\x1f"'\\]+)"""


def named() -> Iterator[Finder]:
    """Yield the finders of secrets in texts that name them."""
    yield several(
        Detector.AUTHORIZATION,
        (
            pattern(Detector.AUTHORIZATION, _HEADER, hint=r"(?i)authorization", groups=(1,), keep=_is_secret),
            pattern(Detector.AUTHORIZATION, _BEARER, hint=r"(?i)bearer[\s\\]", groups=(1,), keep=_is_no_word),
            pattern(Detector.AUTHORIZATION, _COOKIES, hint=r"(?i)cookie", groups=(1,)),
        ),
    )
    yield pattern(Detector.ASSIGNMENT, _ASSIGNMENT, hint=_ASSIGNED, in_bytes=_IN_BYTES, groups=(1, 2, 3), keep=_is_secret)


@lru_cache(maxsize=4096)
def names_a_secret(name: str) -> bool:
    """Whether what is kept under this name is a secret by that: ``http.request.header.authorization``, ``dbPassword``."""
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(_HUMP.sub("_", name)) is not None


def is_count(name: str, value: object) -> bool:
    """Whether a value is a number of tokens, in the sense of language models."""
    return isinstance(value, int | float) and name.lower().endswith("token")


NAME_HINT: Final = _ASSIGNED
NAME_IN_BYTES: Final = _IN_BYTES


def _is_secret(raw: bytes, start: int, end: int) -> bool:
    if _NO_SECRET.fullmatch(raw, start, end):
        return False
    # A call or a look-up in code says where the secret is, not what it is.
    return raw[end : end + 1] not in (b"(", b"[") or raw[start - 1 : start] in (b'"', b"'")


def _is_no_word(raw: bytes, start: int, end: int) -> bool:
    return not raw[start:end].isalpha()
