"""Origins: what the items of one scope of one resource have in common, read once, redacted and fitted."""

from typing import Any, Final, Generic

from collectors.otlp.decoding import Codec, Group, Origin, Part, size_of
from collectors.otlp.fitting import Loss, fewer_attributes, fitted_resource
from collectors.redaction.spans import RequestRedaction

NOWHERE: Final = Origin("", 0, {}, "", "")
"""Stands where no group was opened yet."""


class Origins(Generic[Part]):
    """The origins of one request."""

    def __init__(self, codec: Codec[Part, Any], project: str, received_ns: int) -> None:
        """Take what all of them have in common; ``received_ns`` is of groups that do not say it themselves."""
        self._codec: Final[Codec[Part, Any]] = codec
        self._project: Final = project
        self._received_ns: Final = received_ns
        self._last: tuple[Any, Any, Origin] | None = None

    def of(self, group: Group[Part], redaction: RequestRedaction) -> Origin:
        """Return the origin of a group; raise BadSpanError where its resource or its scope is none."""
        received_ns = group.received_ns or self._received_ns
        # What was received at several times is of one scope all the same.
        if self._last is not None and group.resource is self._last[0] and group.scope is self._last[1]:
            return self._last[2]._replace(received_ns=received_ns)
        loss = Loss()
        whole = fewer_attributes(self._codec.resource(group.resource), loss)
        resource, *scope = redaction.origin(whole, self._codec.scope(group.scope))
        fitting = fitted_resource(resource, size_of(group.resource), loss)
        origin = Origin(self._project, received_ns, fitting, *scope)
        self._last = group.resource, group.scope, origin
        return origin
