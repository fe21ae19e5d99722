"""What people can be known or robbed by, where its form says what it is: e-mail addresses, payment cards, bank accounts."""

import re
from collections.abc import Iterator
from typing import Final

from stdnum import iban, luhn
from stdnum.iso7064 import mod_97_10

from collectors.redaction.finder import NUMBERS, Finder, pattern
from pipeline.config.redaction import Detector
from pipeline.patterns import Pattern, Region

_AT: Final = r"(?:@|%40)"
_EMAIL: Final = (
    rf"[\p{{L}}\p{{N}}._%+'-]+{_AT}(?:[\p{{L}}\p{{N}}](?:[\p{{L}}\p{{N}}-]*[\p{{L}}\p{{N}}])?\.)+\p{{L}}[\p{{L}}\p{{N}}-]*\p{{L}}"
)
_AN_AT: Final = r"[^\s@]@[^\s@]|%40"
_AN_AT_AND_A_DOT: Final = r"[^\s@]@[^\s@\x00-\x1f]+\.[^\s@]|%40"
_IMAGES: Final = (b".png", b".jpg", b".jpeg", b".gif", b".svg", b".webp")
"""``icon@2x.png`` is a picture of double size."""
_USER_INFO: Final = re.compile(rb"://[^\s/]*:[^\s/]*\Z")
"""In a URL a password and a host are no address."""
_LONGEST_USER: Final = 256

_CARD: Final = r"[2-6][0-9]{12,18}|[2-6][0-9]{3}[ -][0-9]{4,6}[ -][0-9]{4,5}(?:[ -][0-9]{4}(?:[ -][0-9]{1,3})?)?"
_DIGITS: Final = r"[2-6][0-9]{3}(?:[ -]?[0-9]){9}"
_A_CARD: Final = rf"(?:^|[^A-Za-z0-9_.]|\\[nrt]|\\u[0-9A-Fa-f]{{4}}){_DIGITS}"
_CARD_IN_BYTES: Final = rf"(?:^|[^0-9]|\\u[0-9A-Fa-f]{{4}})[0-9]?{_DIGITS}"
"""The byte before may be a length that looks like a digit; a card does not begin within a longer number."""
_NUMBER: Final = r"(?:\x18|\x98\x80*\x00)[\x80-\xff]{5}"
"""How protobuf writes a whole number that is large enough to be a card's."""
_BEFORE: Final = re.compile(rb"(?:[A-Za-z0-9_+]|[0-9][.,-]|[.])\Z")
_ESCAPE_BEFORE: Final = re.compile(rb"\\[nrt]\Z")
_AFTER: Final = re.compile(rb"[A-Za-z0-9_]|[.,-][0-9]")
_ISSUERS: Final[tuple[tuple[int, int, range], ...]] = (
    # first and last prefix, and how many digits such a card has
    (4, 4, range(13, 20)),  # Visa: 13, 16 or 19
    (51, 55, range(16, 17)),  # Mastercard
    (2221, 2720, range(16, 17)),  # Mastercard
    (34, 34, range(15, 16)),  # American Express
    (37, 37, range(15, 16)),
    (300, 305, range(14, 20)),  # Diners Club
    (36, 36, range(14, 20)),
    (38, 39, range(14, 20)),
    (3528, 3589, range(16, 20)),  # JCB
    (6011, 6011, range(16, 20)),  # Discover
    (644, 659, range(16, 20)),
    (62, 62, range(16, 20)),  # UnionPay
    (2200, 2204, range(16, 20)),  # Mir
    (5018, 5018, range(13, 20)),  # Maestro
    (5020, 5020, range(13, 20)),
    (5038, 5038, range(13, 20)),
    (5893, 5893, range(13, 20)),
    (6304, 6304, range(13, 20)),
    (6759, 6763, range(13, 20)),
    (60, 60, range(16, 17)),  # RuPay
)
_PREFIXES: Final = range(1, 5)
_LENGTHS: Final = {str(prefix): lengths for first, last, lengths in _ISSUERS for prefix in range(first, last + 1)}
"""How many digits a card has that begins with these."""
_VISA: Final = (13, 16, 19)
_SPACE: Final = re.compile(rb"[ -]")

_IBAN: Final = r"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?"
_AN_IBAN: Final = r"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2} ?[A-Z0-9]{3}"
_SHORTEST_IBAN: Final = 15


def personal() -> Iterator[Finder]:
    """Yield a finder for each."""
    yield pattern(Detector.EMAIL, _EMAIL, hint=_AN_AT, in_bytes=_AN_AT_AND_A_DOT, keep=_is_address, family=NUMBERS)
    yield pattern(Detector.CARD, _CARD, hint=_A_CARD, in_bytes=f"{_CARD_IN_BYTES}|{_NUMBER}", keep=_is_card, family=NUMBERS)
    yield _accounts()


def _is_address(raw: bytes, start: int, end: int) -> bool:
    return not raw[start:end].lower().endswith(_IMAGES) and not _USER_INFO.search(raw[max(0, start - _LONGEST_USER) : start])


def _is_card(raw: bytes, start: int, end: int) -> bool:
    """Whether digits stand alone, begin as an issuer's and check. A part of a longer number, of an id or of a decimal does not."""
    before, number = raw[max(0, start - 2) : start], _SPACE.sub(b"", raw[start:end]).decode()
    if (_BEFORE.search(before) and not _ESCAPE_BEFORE.search(before)) or _AFTER.match(raw, end):
        return False
    return _of_issuer(number) and bool(luhn.is_valid(number))


def _of_issuer(number: str) -> bool:
    if number.startswith("4") and len(number) not in _VISA:
        return False
    return any(len(number) in _LENGTHS.get(number[:size], ()) for size in _PREFIXES) and len(set(number)) > 1


def _accounts() -> Finder:
    compiled = Pattern(_IBAN)

    def find(raw: bytes) -> Iterator[Region]:
        for start, end in compiled.regions(raw):
            yield start, start
            if raw[max(0, start - 1) : start].isalnum() and not _ESCAPE_BEFORE.search(raw[max(0, start - 2) : start]):
                continue
            # A word in capitals behind it looks like a part of it.
            cut = end
            while cut - start >= _SHORTEST_IBAN and not _checks(raw[start:cut]):
                cut = raw.rfind(b" ", start, cut)
                yield start, start
            if cut - start >= _SHORTEST_IBAN:
                yield start, cut

    return Finder(Detector.IBAN, (_AN_IBAN,), find, (_AN_IBAN,), NUMBERS)


def _checks(raw: bytes) -> bool:
    """Whether this is an account: by its check digits first, as to look up its country takes five times as long."""
    number = raw.decode().replace(" ", "")
    return mod_97_10.is_valid(number[4:] + number[:4]) and iban.is_valid(number, check_country=False)
