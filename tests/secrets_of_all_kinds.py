"""A secret for every detector, and texts that look like secrets and are none. All of them were made up here."""

from typing import Final, NamedTuple

from pipeline.config.redaction import Detector


class Planted(NamedTuple):
    """A secret in the text in which it is known for one. ``secret`` is what must not be left of it."""

    detector: Detector
    text: str
    secret: str


def _alone(detector: Detector, secret: str) -> Planted:
    return Planted(detector, secret, secret)


_BASE = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7"
KEY_BLOCK: Final = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAwJ7h3Jm1c0uH0VQ2S8tHqk2o1yq5\nPZr4kq3lq9XWm2cEJ4kV\n-----END RSA PRIVATE KEY-----"
PLANTED: Final[tuple[Planted, ...]] = (
    Planted(Detector.AUTHORIZATION, "Authorization: Bearer zq81kd02mm39dk10", "zq81kd02mm39dk10"),
    Planted(Detector.AUTHORIZATION, "authorization=Basic b3BlbjpzZXNhbWU=", "b3BlbjpzZXNhbWU="),
    Planted(Detector.AUTHORIZATION, "sent with bearer zq81kd02mm39dk10", "zq81kd02mm39dk10"),
    Planted(Detector.AUTHORIZATION, "Cookie: session=s3ss10n; theme=dark", "s3ss10n"),
    Planted(Detector.ASSIGNMENT, "password=correct-horse-9", "correct-horse-9"),
    Planted(Detector.ASSIGNMENT, "api_key: k3y0fTheHouse", "k3y0fTheHouse"),
    Planted(Detector.ASSIGNMENT, "DB_PASSWORD='with spaces in it'", "with spaces in it"),
    Planted(Detector.ASSIGNMENT, "https://x.example/cb?state=1&access_token=zzTop99x&y=2", "zzTop99x"),
    _alone(Detector.PRIVATE_KEY, KEY_BLOCK),
    _alone(
        Detector.JWT,
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI0NzExIiwibmFtZSI6Ik5vYm9keSJ9.s1gnatur3s1gnatur3s1gnatur3s1gnatur3s1gna",
    ),
    Planted(Detector.BASIC_AUTH, "postgres://grader:v3rys3cret@db.example:5432/runs", "v3rys3cret"),
    Planted(Detector.BASIC_AUTH, "redis://:v3ry!s3cret@cache.example", "v3ry!s3cret"),
    _alone(Detector.PROVIDER_KEY, f"sk-ant-api03-{_BASE}"),
    _alone(Detector.PROVIDER_KEY, f"AIza{_BASE}aB3dE6gH"),
    _alone(Detector.AWS, "AKIAQ7ZX4TRN2WLM9KPC"),
    Planted(
        Detector.AWS, 'the aws token is "wJalrXUtnFEMIxK7MDENGxbPxRfiCYEXAMPLEKEY"', "wJalrXUtnFEMIxK7MDENGxbPxRfiCYEXAMPLEKEY"
    ),
    _alone(Detector.AZURE, f"AccountKey={(_BASE * 4)[:86]}=="),
    _alone(Detector.ARTIFACTORY, f"AKC{_BASE}"),
    _alone(Detector.DISCORD, f"MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{_BASE[:27]}"),
    _alone(Detector.GITHUB, f"ghp_{_BASE}aB3dE6gH9"),
    _alone(Detector.GITLAB, "glpat-aB3dE6gH9jK2mN5pQ8sT"),
    _alone(Detector.MAILCHIMP, "0123456789abcdef0123456789abcdef-us12"),
    Planted(Detector.NPM, f"//registry.example/:_authToken=npm_{_BASE}", f"npm_{_BASE}"),
    _alone(Detector.OPENAI, "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"),
    _alone(Detector.PYPI, f"pypi-AgEIcHlwaS5vcmc{_BASE * 3}"),
    _alone(Detector.SENDGRID, f"SG.{_BASE[:22]}.{(_BASE * 2)[:43]}"),
    _alone(Detector.SLACK, "xoxb-123456789012-123456789012-aB3dE6gH9jK2mN5pQ8sT1vW4"),
    _alone(Detector.SLACK, "https://hooks.slack.com/services/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"),
    _alone(Detector.SQUARE, f"sq0csp-{(_BASE * 2)[:43]}"),
    _alone(Detector.STRIPE, "sk_live_aB3dE6gH9jK2mN5pQ8sT1vW4"),
    _alone(Detector.TELEGRAM, f"123456789:{(_BASE * 2)[:35]}"),
    _alone(Detector.TWILIO, "SK0123456789abcdef0123456789abcdef"),
    _alone(Detector.CARD, "4012888888881881"),
    _alone(Detector.CARD, "5555 5555 5555 4444"),
    _alone(Detector.CARD, "3782-822463-10005"),
    _alone(Detector.IBAN, "DE89370400440532013000"),
    _alone(Detector.IBAN, "GB29 NWBK 6016 1331 9268 19"),
    _alone(Detector.EMAIL, "ada.lovelace+bills@mail.example.co.uk"),
    _alone(Detector.EMAIL, "jürgen@müller.example"),
    _alone(Detector.EMAIL, "ada%40example.com"),
)
"""By detector: each has one at least; what is told by its name alone (``secret-name``) has no text."""

HARMLESS: Final = (
    "0af7651916cd43dd8448eb211c80319c",  # a trace id
    "b7ad6b7169203331",
    "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "550e8400-e29b-41d4-a716-446655440000",
    "call_aB3dE6gH9jK2mN5pQ8sT1vW4",
    "task-550e8400-e29b-41d4-a716-446655440000",
    "risk-management-and-compliance-dashboard",
    "chatcmpl-9xK2mN5pQ8sT1vW4yZ7aB3dE6gH9",
    "toolu_01A09q90qw90lq917835lq9",
    "d41d8cd98f00b204e9800998ecf8427e",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "1764480000",
    "1764480000000",
    "1764480000000000",
    "1764480000000000000",
    "4111111111111112",  # the check digit is wrong
    "1234567890123452",  # no issuer's
    "order 99-4012888888881881-7",  # within a longer number
    "id4012888888881881",
    "0.4012888888881881",
    "4012888888881881.25",
    "x_4012888888881881",
    "+49 1512 3456789",
    "2026-11-30T05:36:08.123456Z",
    "2026-11-30 05:36:08",
    "1.2.3-rc.1+build.5",
    "python 3.11.7, numpy 2.1.0",
    "$1,299.00 and 42.50 EUR",
    "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
    "user@",
    "@user thanks",
    "user@host",
    "@scope/pkg",
    "npm i @types/node@20.1.0 react@18.2.0",
    "@app.route('/x')\n@dataclass\ndef f(): ...",
    "a @ b",
    "icon@2x.png",
    "actions/checkout@v4",
    "image@sha256:e3b0c44298fc",
    "10.0.0.1:8080 and user@10.0.0.1",
    "http://example.com:8080/a/b?c=d",
    "https://example.com/@user/post",
    "max_tokens: 500, token count 12",
    "next_token=page2",
    "input_tokens: 120",
    "the token: 500",
    "password: str = None",
    "password: required",
    "token = get_token()",
    "if password == other",
    "PWD=/srv/app",
    "api_key=${API_KEY}",
    "secret=<your secret>",
    "bearer authentication is required",
    "the cookie jar",
    "authorization required",
    "GET /v1/secrets/list",
    "AKIA is how they begin",
    "ABCD1234EFGH",
    "HTTP2023 STATUS CODE 2024",
    "gen_ai.usage.input_tokens",
    "aGVsbG8gd29ybGQsIHRoaXMgaXMgZmluZQ==",  # base64 of what is no secret
    "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZw==",
    r"C:\Users\someone\new folder",
    '{"role": "user", "content": "Where is order A-17?\\nIt was 42.50.", "n": [1, 2.50, 1764480000000000000]}',
    "日本語のテキスト",
)
"""Must stay as they are."""

HARMLESS_NAMES: Final = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.request.max_tokens",
    "llm.token_count.total",
    "next_token",
    "nextPageToken",
    "tokens",
    "token_type",
    "password_reset_url",
    "cookies_accepted",
    "authorized",
    "secretary",
    "monkey",
    "passwordless",
)
SECRET_NAMES: Final = (
    "authorization",
    "http.request.header.authorization",
    "http.request.header.cookie",
    "http.response.header.set-cookie",
    "Proxy-Authorization",
    "password",
    "db.password",
    "DB_PASSWORD",
    "userPassword",
    "api_key",
    "apiKey",
    "x-api-key",
    "openai_api_key",
    "secret",
    "client_secret",
    "clientSecret",
    "token",
    "auth.token",
    "access_token",
    "refreshToken",
    "aws_secret_access_key",
)
