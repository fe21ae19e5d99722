"""Keys and tokens that are known by their form: the patterns that detect-secrets keeps, and those of model providers, which it has not."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from detect_secrets.plugins.artifactory import ArtifactoryDetector
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.basic_auth import BasicAuthDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.jwt import JwtTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.private_key import PrivateKeyDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

from collectors.redaction.finder import BEFORE_TOKEN, NUMBERS, START, Finder, pattern, several, shortened
from pipeline.config.redaction import Detector
from pipeline.patterns import Region

_PLUGINS: Final[dict[Detector, type[RegexBasedDetector]]] = {
    Detector.ARTIFACTORY: ArtifactoryDetector,
    Detector.AWS: AWSKeyDetector,
    Detector.AZURE: AzureStorageKeyDetector,
    Detector.BASIC_AUTH: BasicAuthDetector,
    Detector.DISCORD: DiscordBotTokenDetector,
    Detector.GITHUB: GitHubTokenDetector,
    Detector.GITLAB: GitLabTokenDetector,
    Detector.JWT: JwtTokenDetector,
    Detector.MAILCHIMP: MailchimpDetector,
    Detector.NPM: NpmDetector,
    Detector.OPENAI: OpenAIDetector,
    Detector.PYPI: PypiTokenDetector,
    Detector.SENDGRID: SendGridDetector,
    Detector.SLACK: SlackDetector,
    Detector.SQUARE: SquareOAuthDetector,
    Detector.STRIPE: StripeDetector,
    Detector.TELEGRAM: TelegramBotTokenDetector,
    Detector.TWILIO: TwilioKeyDetector,
}
_HINTS: Final = {
    Detector.ARTIFACTORY: rf"{BEFORE_TOKEN}(?:AKC[a-zA-Z0-9]{{10}}|AP[0-9A-F][a-zA-Z0-9]{{8}})",
    Detector.AWS: r"(?:A3T[0-9A-Z]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{8}|[\"'](?:\\*[0-9A-Za-z/+]){40}\\*[\"']",
    Detector.AZURE: r"AccountKey=",
    Detector.BASIC_AUTH: r"/[^\s/@]*:[^\s/]+@",
    Detector.DISCORD: r"\.[a-zA-Z\d_-]{6}\.[a-zA-Z\d_-]{27}",
    Detector.MAILCHIMP: r"[0-9a-z]-us[0-9]",
    Detector.NPM: r"_authToken",
    Detector.OPENAI: r"T3BlbkFJ",
    Detector.SLACK: r"(?i)xox[abposr]-[0-9]|hooks\.slack\.com",
    Detector.TELEGRAM: r"\d{8}:[0-9A-Za-z_-]{8}",
}
"""Where a pattern has quotes or slashes, which JSON may escape; or begins with what any text may have, and says later what it is."""
_FAMILY: Final = {Detector.AWS: NUMBERS, Detector.BASIC_AUTH: NUMBERS}
"""Whose hints count, or look for an ``@`` as those of e-mail addresses do."""
_SECRET_GROUP: Final = {(Detector.AWS, 1): (1,), (Detector.BASIC_AUTH, 0): (1,), (Detector.NPM, 0): (1,)}
"""Where only a part of the match is the secret: by the pattern's place."""
_LINEAR: Final = (
    (r"(?!\w)", ""),  # RE2 does not look ahead, and where a token ends is seen anyway
    ("{50,1024}", "{50,1000}"),  # it counts to a thousand
    (r"\/.+\/", r"\/[^\s\"'\\]+\/"),  # in JSON a line is longer than it was
    ("npm_.+", "npm_[A-Za-z0-9_-]+"),
    (r"[\'\"]", r"\\*[\'\"]"),
)
_BOUNDED: Final = re.compile(r'\(\?:\\s\|=\|:\|"\|\^\)(.+)\(\?:\\s\|"\|\$\)')
"""A token with what may stand before it and behind it."""

# A password in a URL as people write them: any character, and no user before it. The library's stops at what RFC 3986 reserves.
_PASSWORD_IN_URL: Final = r"""://[^\s/?#:@"'\\]*:([^\s/?#"'\\]+)@"""
_PROVIDERS: Final = (
    r"sk-[A-Za-z0-9_-]{20,}",  # OpenAI, Anthropic, OpenRouter, Langfuse, LiteLLM
    r"sk_test_[A-Za-z0-9]{16,}",
    r"github_pat_[A-Za-z0-9_]{22,}",
    r"AIza[A-Za-z0-9_-]{35}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"gsk_[A-Za-z0-9]{40,}",
    r"hf_[A-Za-z0-9]{30,}",
    r"xai-[A-Za-z0-9]{40,}",
    r"pplx-[A-Za-z0-9]{40,}",
    r"r8_[A-Za-z0-9]{37,}",
    r"lsv2_[a-z]{2}_[A-Za-z0-9_]{32,}",
    r"tvly-[A-Za-z0-9-]{20,}",
)
_KEY_ENDS: Final = re.compile(rb"-----END [A-Z0-9 ]*-----")
_KEY_LINES: Final = re.compile(rb"(?:[-\s]|\\[nrt])*+(?:[A-Za-z0-9+/=]{16,}+(?:\s|\\[nrt])*+)*+[A-Za-z0-9+/=]*+")
_DIGIT: Final = re.compile(rb"[0-9]")
_LONGEST_KEY: Final = 32 * 1024


def credentials() -> Iterator[Finder]:
    """Yield a finder for each kind of credential."""
    for name, plugin in _PLUGINS.items():
        found = [_of_library(name, place, one) for place, one in enumerate(plugin().denylist)]
        if name is Detector.BASIC_AUTH:
            more = pattern(name, _PASSWORD_IN_URL, hint=_HINTS[name], groups=(1,), family=_FAMILY[name])
            found.insert(0, more)
        yield several(name, found)
    providers = rf"{START}({'|'.join(_PROVIDERS)})"
    hint = "|".join(map(shortened, _PROVIDERS))
    yield pattern(Detector.PROVIDER_KEY, providers, hint=hint, groups=(1,), keep=_has_digit, whole=True)
    yield _private_key()


def _of_library(name: Detector, place: int, its: re.Pattern[str]) -> Finder:
    """Return a finder of one of the library's patterns, as RE2 reads it."""
    text, hint, groups = its.pattern, _HINTS.get(name, ""), _SECRET_GROUP.get((name, place), (0,))
    for theirs, ours in _LINEAR:
        text = text.replace(theirs, ours)
    if bounded := _BOUNDED.fullmatch(text):
        return pattern(
            name, f"{START}({bounded[1]})", hint=hint or shortened(bounded[1]), groups=(1,), keep=_has_digit, whole=True
        )
    written = f"(?i){text}" if its.flags & re.IGNORECASE else text
    return pattern(name, written, hint=hint, groups=groups, whole=True, family=_FAMILY.get(name, ""))


def _has_digit(raw: bytes, start: int, end: int) -> bool:
    """Words that are joined by hyphens have none."""
    return _DIGIT.search(raw, start, end) is not None


def _private_key() -> Finder:
    headers = several(Detector.PRIVATE_KEY, (pattern(Detector.PRIVATE_KEY, one.pattern) for one in PrivateKeyDetector.denylist))

    def find(raw: bytes) -> Iterator[Region]:
        """From the first line to the last one; where that is cut off, as far as it can be the key."""
        ends = [match.end() for match in _KEY_ENDS.finditer(raw)]
        done = 0
        for start, end in sorted(headers.find(raw)):
            if start < done or start == end:
                continue
            dashes = 5 * raw.startswith(b"-----", start - 5)
            after = bisect_right(ends, end)
            if after < len(ends) and ends[after] <= end + _LONGEST_KEY:
                done = ends[after]
            else:
                lines = _KEY_LINES.match(raw, end, end + _LONGEST_KEY)
                done = lines.end() if lines else end
            yield start - dashes, done

    return Finder(Detector.PRIVATE_KEY, headers.hints, find, headers.in_bytes)
