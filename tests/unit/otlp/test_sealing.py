"""The content hash says what a span says, not how it was written or when it came."""

from typing import Any

import msgspec
import pytest
from builders import a_span
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model.span import Event, Link, Span, seal

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def _reversed(value: Any) -> Any:
    """The same value with the keys of every map the other way round."""
    if isinstance(value, dict):
        return {key: _reversed(item) for key, item in reversed(value.items())}
    return [_reversed(item) for item in value] if isinstance(value, list) else value


@given(attributes=st.dictionaries(st.text(max_size=5), JSON, max_size=5))
def test_the_order_of_attributes_does_not_matter_at_any_depth(attributes: dict[str, Any]) -> None:
    one = a_span(
        attributes=attributes, resource=attributes, events=(Event("e", 1, attributes),), links=(Link("t", "s", attributes),)
    )
    turned = _reversed(attributes)
    other = a_span(attributes=turned, resource=turned, events=(Event("e", 1, turned),), links=(Link("t", "s", turned),))
    assert one.content_hash == other.content_hash


def test_the_order_of_a_list_matters() -> None:
    assert a_span(attributes={"a": [1, 2]}).content_hash != a_span(attributes={"a": [2, 1]}).content_hash


def test_when_a_span_arrived_does_not_matter_and_stays() -> None:
    late = a_span(received_ns=99)
    assert late.content_hash == a_span().content_hash
    assert late.received_ns == 99


def test_sealing_twice_changes_nothing() -> None:
    assert seal(a_span()) == a_span()


CHANGES: dict[str, Any] = {
    "project": "other",
    "trace_id": "cd" * 16,
    "span_id": "00000000000000a2",
    "parent_id": "00000000000000a3",
    "name": "other",
    "start_ns": 1,
    "end_ns": 1,
    "kind": 3,
    "status_code": 2,
    "status_message": "no",
    "attributes": {"a": 1},
    "events": (Event("e"),),
    "links": (Link("t", "s"),),
    "resource": {"a": 1},
    "scope_name": "s",
    "scope_version": "1",
    "trace_state": "a=b",
    "flags": 1,
    "dropped": 1,
}


@pytest.mark.parametrize("field", CHANGES)
def test_every_field_that_says_something_is_in_the_hash(field: str) -> None:
    assert a_span(**{field: CHANGES[field]}).content_hash != a_span().content_hash


def test_the_list_of_fields_above_is_all_of_them() -> None:
    assert CHANGES.keys() | {"received_ns", "content_hash"} == {field.name for field in msgspec.structs.fields(Span)}
