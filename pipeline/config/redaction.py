"""What a user configures of redaction: what is taken out of everything before it is stored or published."""

from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, model_validator

from pipeline.model.settings import Settings
from pipeline.patterns import check_rule

FAILED: Final = "[redaction failed]"
"""Stands in place of a value for which a detector raised, and is what that is counted under."""


class Detector(StrEnum):
    """What is looked for; the name is what stands in place of what was found: ``[redacted:email]``."""

    AUTHORIZATION = "authorization"
    """The header, also that of a proxy, with any scheme; a bearer's token anywhere; cookies."""
    ASSIGNMENT = "assignment"
    """``password=…``, ``api_key: …`` and the like in running text, code and URLs."""
    SECRET_NAME = "secret-name"
    """The whole value under a name that says it is one: ``password``, ``authorization``, ``api_key``."""
    PRIVATE_KEY = "private-key"
    JWT = "jwt"
    BASIC_AUTH = "basic-auth"
    """The password in a URL."""
    PROVIDER_KEY = "provider-key"
    """Keys of model providers and of tools around models, by how they begin."""
    AWS = "aws"
    AZURE = "azure"
    ARTIFACTORY = "artifactory"
    DISCORD = "discord"
    GITHUB = "github"
    GITLAB = "gitlab"
    MAILCHIMP = "mailchimp"
    NPM = "npm"
    OPENAI = "openai"
    PYPI = "pypi"
    SENDGRID = "sendgrid"
    SLACK = "slack"
    SQUARE = "square"
    STRIPE = "stripe"
    TELEGRAM = "telegram"
    TWILIO = "twilio"
    CARD = "card"
    """Payment cards: 13 to 19 digits of an issuer, with the right check digit."""
    IBAN = "iban"
    EMAIL = "email"


class RuleSettings(Settings):
    """Something else that must not be stored. A pattern, the names of attributes, or a pattern in the values of those attributes only."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
    """Its own name, which stands in place of what it finds: lower-case letters, digits, ``_`` and ``-``."""
    pattern: Annotated[str, Field(min_length=1), AfterValidator(check_rule)] | None = None
    """A regular expression that RE2 reads; ``^`` and ``$`` stand for the ends of lines. What it finds is replaced."""
    keys: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Names of attributes, or of fields inside of them. Without a pattern their whole values are replaced."""

    @model_validator(mode="after")
    def _finds_something(self) -> Self:
        if self.pattern is None and not self.keys:
            raise ValueError("finds nothing; write a pattern, or keys, or both")
        return self


class RedactionSettings(Settings):
    """What is replaced in every span, log record and comment before it is stored or published."""

    off: bool = False
    """``true`` to store everything as it was sent."""
    detectors: dict[str, bool] = Field(default={})
    """Detectors by name; each is on unless ``false`` is written."""
    rules: tuple[RuleSettings, ...] = ()
    """What else is to be replaced."""
