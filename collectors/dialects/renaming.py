"""Attributes under another name: for dialects that say what OpenTelemetry's conventions say, and call it differently."""

from collections.abc import Mapping

import msgspec

from pipeline.model.span import Span


def renamed(span: Span, names: Mapping[str, str]) -> Span:
    """Return the span with these attributes under the conventions' names as well, ``names`` being theirs → the conventions'.

    What it has under the conventions' own name stays.
    """
    found = {ours: span.attributes[theirs] for theirs, ours in names.items() if theirs in span.attributes}
    return msgspec.structs.replace(span, attributes=found | span.attributes) if found else span
