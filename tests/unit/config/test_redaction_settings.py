"""What a mistake in the configuration of redaction is told as."""

from pathlib import Path

import pytest

from pipeline.config.check import check


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (
            "{detectors: {emial: false}}",
            "redaction.detectors.emial: no detector is called so; did you mean `email`? the detectors are: ",
        ),
        ("{detectors: {email: maybe}}", "redaction.detectors.email: maybe is not true or false; write true or false"),
        (
            "{rules: [{name: No, pattern: a}]}",
            "redaction.rules[0].name: No is not a name that can be used here; write one that fits ",
        ),
        (
            '{rules: [{name: a, pattern: "(?<=a)b"}]}',
            "redaction.rules[0].pattern: '(?<=a)b' is no pattern that RE2 reads (invalid perl",
        ),
        (
            '{rules: [{name: a, pattern: "x*"}]}',
            "redaction.rules[0].pattern: 'x*' is found in an empty text, so in every one; leave out",
        ),
        ("{rules: [{name: a}]}", "redaction.rules[0]: finds nothing; write a pattern, or keys, or both"),
        (
            "{rules: [{name: a, pattern: b}, {name: a, pattern: c}]}",
            "redaction.rules[1].name: a is the name of a detector or of another rule; give each rule a name of its own",
        ),
        (
            "{rules: [{name: email, pattern: b}]}",
            "redaction.rules[0].name: email is the name of a detector or of another rule; give",
        ),
        ("{enabled: false}", "redaction.enabled: unknown key"),
    ],
)
def test_a_mistake_is_told_with_what_to_write(written: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "tracegrade.yaml"
    path.write_text(f"redaction: {written}\n")
    (error,) = check(path, {}).errors
    assert error.startswith(f"{path}:1: {told}")
