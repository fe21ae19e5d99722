"""What a dialect is: one way in which instrumentations write down what an agent did. One module each, whose ``DIALECT`` says all of it."""

from collections.abc import Callable

import msgspec

from pipeline.model.span import Span
from pipeline.model.step import Step


class About(msgspec.Struct, frozen=True):
    """What people want to know of a dialect before they look at a run: a name, and two sentences."""

    title: str
    """Which frameworks and instrumentations write it."""
    default: str
    """What its spans hold where nobody configured anything."""
    content: str = ""
    """How messages, arguments and results are switched on; empty where they are on by default."""


class Marks(msgspec.Struct, frozen=True):
    """By what a dialect's spans are told from others'.

    A scope is the whole name of an instrumentation scope, or the beginning of one with ``*`` after it. An attribute is a name, a name and a
    value with ``=`` between them, or the beginning of a name with ``*`` after it.
    """

    scopes: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()


class Dialect(msgspec.Struct, frozen=True):
    """One dialect. ``read`` is pure: the same span always gives the same step, and no attribute makes it raise."""

    name: str
    """The name that steps and runs carry."""
    about: About
    marks: Marks
    read: Callable[[Span], Step]
