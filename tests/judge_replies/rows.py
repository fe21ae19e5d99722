"""Every kind of reply of a judge's model, and what must become of it (reliability H11; scoring, section 6).

What is expected was written by reading the specification: one object, bare, fenced or in prose, is accepted; two that differ, or none, what
is out of range, NaN or of a wrong type is ``grader_error``; so is a quote that is not found.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pipeline.judges.reply import LONGEST, Malformed, Parsed, parse, parse_verdict
from pipeline.judges.scripted import Canned

ACCEPTED = "accepted"
UNKNOWN = "unknown"
MALFORMED = "malformed"
TRUNCATED = "truncated"
REFUSAL = "refusal"
QUOTE_NOT_FOUND = "quote_not_found"
REFUSED = "refused"
"""What becomes of a reply: its score, Unknown, or a grader error with this as the first word of its reason."""


class Form(NamedTuple):
    """One of the two things that a judge is asked for, and a good answer to it."""

    name: str
    key: str
    good: Any
    other: Any
    score: int
    """What ``good`` is as a score."""
    rubric: str
    dimension: str
    parse: Callable[[str], Parsed | Malformed]

    def said(self, answer: Any = None, reason: Any = "Fine.", evidence: Any = "42.50") -> str:
        """A reply as the prompt asks for it, with the good answer where none is given."""
        return json.dumps({self.key: self.good if answer is None else answer, "reason": reason, "evidence": evidence})

    def written(self, answer: str) -> str:
        """The same with this in the place of the answer, JSON or not."""
        return f'{{"{self.key}": {answer}, "reason": "Fine.", "evidence": "42.50"}}'


SCORE = Form("a score", "score", 4, 1, 4, "support", "tone", lambda text: parse(text, (1, 5)))
CRITERION = Form("a criterion", "verdict", "PASS", "FAIL", 1, "criteria", "grounded", parse_verdict)
FORMS = (SCORE, CRITERION)

Reply = Callable[[Form], str]

READ: Mapping[str, Reply] = {
    "bare": lambda form: form.said(),
    "fenced": lambda form: f"```json\n{form.said()}\n```",
    "fenced, in no language": lambda form: f"```\n{form.said()}\n```",
    "in prose": lambda form: f"I looked at it closely.\n{form.said()}\nThat is all.",
    "after a heading": lambda form: f"Here is what I think:\n{form.said()}",
    "after thoughts": lambda form: f"<think>The amount stands there.</think>{form.said()}",
    "after a byte order mark": lambda form: f"\ufeff{form.said()}",
    "twice the same": lambda form: f"{form.said()}\n{form.said()}",
    "after another object": lambda form: f'The record {{"order_id": "A-1"}} decides. {form.said()}',
    "after an object in an object": lambda form: f'{{"order": {{"id": {{"n": 1}}}}}} {form.said()}',
    "after braces that are no JSON": lambda form: f"As {{order}} shows: {form.said()}",
    "with other keys": lambda form: json.dumps({**json.loads(form.said()), "confidence": 0.9}),
    "with a key that says the opposite": lambda form: json.dumps({**json.loads(form.said()), "pass": False}),
    "spread over lines": lambda form: json.dumps(json.loads(form.said()), indent=2),
}  # fmt: skip
"""One object, wherever it stands."""

ANSWERS: Mapping[str, str] = {
    "a fraction": '"4/5"',
    "a percentage": '"80%"',
    "a number in quotes": '"0.7"',
    "a decimal comma": "0,8",
    "a part": "0.7",
    "true": "true",
    "NaN": "NaN",
    "Infinity": "Infinity",
    "minus Infinity": "-Infinity",
    "1e999": "1e999",
    "85": "85",
    "-1": "-1",
    "null": "null",
    "a float": "4.0",
    "an exponent": "4e0",
    "hexadecimal": "0x4",
    "an Arabic digit": "٤",
    "a digit that repeats": "9" * 5000,
    "zero": "0",
    "six": "6",
    "a list": "[4]",
    "a list of a word": '["PASS"]',
    "an object": '{"value": 4}',
    "empty text": '""',
    "a text": '"4"',
    "passed": '"PASSED"',
    "both": '"PASS|FAIL"',
    "yes": '"yes"',
    "partly": '"PARTIAL"',
    "not applicable": '"N/A"',
    "letters that look so": '"РASS"',
}
"""In the place of the answer: neither a whole number on the scale 1 to 5, nor PASS, FAIL or Unknown."""

UNREADABLE: Mapping[str, Reply] = {
    "nothing": lambda _: "",
    "white space": lambda _: " \n\t",
    "4/5": lambda _: "4/5",
    "80%": lambda _: "80%",
    '"0.7"': lambda _: '"0.7"',
    "0,8": lambda _: "0,8",
    "a bare true": lambda _: "true",
    "a bare NaN": lambda _: "NaN",
    "a bare 1e999": lambda _: "1e999",
    "a bare 85": lambda _: "85",
    "a bare -1": lambda _: "-1",
    "a bare null": lambda _: "null",
    "the bare answer": lambda form: str(form.good),
    "an empty object": lambda _: "{}",
    "an empty list": lambda _: "[]",
    "an injected grade": lambda _: "GRADE: A",
    "an injected preference": lambda _: "[[A]]",
    "a refusal": lambda _: "I'm sorry, but I cannot evaluate this.",
    "a page of HTML": lambda _: "<html><body><h1>502 Bad Gateway</h1></body></html>",
    "single quotes": lambda form: form.said().replace('"', "'"),
    "a trailing comma": lambda form: form.said()[:-1] + ",}",
    "no answer": lambda _: '{"reason": "Fine.", "evidence": "42.50"}',
    "no reason": lambda form: json.dumps({form.key: form.good, "evidence": "42.50"}),
    "no evidence": lambda form: json.dumps({form.key: form.good, "reason": "Fine."}),
    "a reason that is no text": lambda form: form.said(reason=["Fine."]),
    "evidence that is no text": lambda form: form.said(evidence=42.5),
    "what the other kind asks for": lambda form: next(one.said() for one in FORMS if one.key != form.key),
    "two that differ": lambda form: form.said(form.other) + form.said(),
    "two that differ in their reason": lambda form: form.said() + form.said(reason="Good."),
    "one in its thoughts, and another": lambda form: f"<think>{form.said(form.other)}</think>{form.said()}",
    "answers alone, in its thoughts and after": lambda form: f'<think>perhaps {{"{form.key}": 1}}</think>{{"{form.key}": 0}}',
    "an answer alone in its thoughts, and a good one": lambda form: f'<think>{{"{form.key}": 1}}</think>{form.said()}',
    "one and the rest of another": lambda form: form.said() + f'{{"{form.key}": 1, "reas',
    "one and another in single quotes": lambda form: form.said() + f"{{'{form.key}': 1}}",
    "one and another without quotation marks": lambda form: form.said() + f"{{{form.key}: 1}}",
    "one inside another object": lambda form: json.dumps({"result": json.loads(form.said())}),
    "one in a list": lambda form: json.dumps({"results": [json.loads(form.said())]}),
    "one key twice": lambda form: form.said()[:-1] + f', "{form.key}": {json.dumps(form.other)}}}',
    "longer than any verdict": lambda form: form.said() + " " * LONGEST,
    "ten megabytes": lambda _: "x" * 10_000_000,
    "a pit of brackets": lambda form: f'{{"{form.key}": ' + "[" * 20_000,
    "a crowd of braces": lambda form: "{" * 200 + form.said(),
    "a pit of objects": lambda _: '{"a":' * 10_000,
}  # fmt: skip
"""None, or more than one, or one that cannot be read."""

UNDECIDED: Mapping[str, Reply] = {
    "Unknown": lambda form: form.said("Unknown", "No record.", ""),
    "unknown, in small letters": lambda form: form.said("unknown", "No record.", ""),
    "Unknown alone": lambda form: f'{{"{form.key}": "Unknown"}}',
    "Unknown without reason and evidence": lambda form: f'{{"{form.key}": "Unknown", "reason": null, "evidence": null}}',
}

UNQUOTED: Mapping[str, Reply] = {
    "an empty quote": lambda form: form.said(evidence=""),
    "a quote of one letter": lambda form: form.said(evidence="e"),
    "a quote of marks": lambda form: form.said(evidence="..."),
    "a quote that stands nowhere": lambda form: form.said(evidence="a refund of 120.00 USD was issued"),
    "a quote with an ellipsis": lambda form: form.said(evidence="I refunded … A-1001"),
    "a quote of the prompt": lambda form: form.said(evidence="Fluency and length earn nothing."),
    "a quote of the rubric's example": lambda form: form.said(evidence="Order B-2040"),
}


class Row(NamedTuple):
    """A line of the table: a reply, and what must become of it."""

    words: str
    reply: Canned
    becomes: str
    calls: int
    """How often the endpoint is asked: a reply without a verdict that can be read is asked for once more."""


def rows(form: Form, every: int = 1) -> list[Row]:
    """The table for what is asked for. Replies are cut at every so many bytes."""
    return [
        *_texts(form, READ, ACCEPTED, 1),
        *_texts(form, UNDECIDED, UNKNOWN, 1),
        *_texts(form, UNQUOTED, QUOTE_NOT_FOUND, 1),
        *(Row(f"{form.key}: {words}", Canned(text=form.written(answer)), MALFORMED, 2) for words, answer in ANSWERS.items()),
        *_texts(form, UNREADABLE, MALFORMED, 2),
        *(Row(f"cut after {cut} bytes", Canned(text=form.said()[:cut]), MALFORMED, 2) for cut in range(0, len(form.said()), every)),
        Row("cut by its limit of tokens", Canned(text=form.said()[:30], finish_reason="length"), TRUNCATED, 2),
        Row("thoughts took all its tokens", Canned(text="", finish_reason="length"), TRUNCATED, 2),
        Row("refused in the field for that", Canned(body=_REFUSAL), REFUSAL, 2),
        Row("a page of HTML under 200", Canned(body="<html>502 Bad Gateway</html>", content_type="text/html"), MALFORMED, 2),
        Row("a page of HTML that says it is JSON", Canned(body="<html>502 Bad Gateway</html>"), MALFORMED, 2),
        Row("no body", Canned(body=""), MALFORMED, 2),
        Row("no choices", Canned(body='{"choices": []}'), MALFORMED, 2),
        Row("a body of ten megabytes", Canned(body="x" * 10_000_000), MALFORMED, 2),
        Row("a body after a byte order mark", Canned(body="\ufeff" + _completion(form.said())), ACCEPTED, 1),
        Row("a body that was cut", Canned(body=_completion(form.said())[:-20]), MALFORMED, 2),
        Row("an error that will not pass", Canned(body="{}", status=418), REFUSED, 1),
    ]  # fmt: skip


def _texts(form: Form, replies: Mapping[str, Reply], becomes: str, calls: int) -> list[Row]:
    return [Row(words, Canned(text=reply(form)), becomes, calls) for words, reply in replies.items()]


_REFUSAL = json.dumps({"choices": [{"message": {"content": None, "refusal": "I will not."}}]})


def _completion(text: str) -> str:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
