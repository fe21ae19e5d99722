"""A YAML file whose values remember where they were written, so that a mistake can be told by line."""

import math
import os
import re
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.composer import ComposerError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from pipeline.aliases import TOO_MANY, too_many
from pipeline.config.mistake import Location, Mistake, spoken

_TAG: Final = "tag:yaml.org,2002:"
_PLAIN: Final = {f"{_TAG}{name}" for name in ("null", "bool", "int", "float")}
_TEXT: Final = {f"{_TAG}{name}" for name in ("str", "timestamp", "value")}
_MERGE: Final = f"{_TAG}merge"
_REFERENCE: Final = re.compile(r"\$\$\{|\$\{([^}]*)\}?")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_GREATEST_SIZE: Final = 1_000_000
_SHORTEST_SECRET: Final = 4
"""Shorter values are left in messages: taking them out would garble other words."""
_HINTS: Final = (
    (
        "mapping values are not allowed",
        "write `key: value` one to a line, each as far in as its neighbours, and quote text that holds `: `",
    ),
    ("cannot start any token", "put text that begins with this character in quotes, and indent with spaces"),
    ("end of stream", "close the quote"),
    ("undefined alias", "put text that begins with `*` in quotes, or define the anchor with `&` above"),
    ("another document", "remove the `---`: the configuration is one document"),
    ("expected <block end>", "indent it as far as its neighbours"),
    ("expected ',' or", 'close the bracket, and quote text that holds one of , [ ] { } such as "${NAME}"'),
    ("could not find expected ':'", "write `key: value`"),
)


class YamlFile:
    """A parsed file: its plain ``data``, what was wrong with it by itself, and the line of each of its values.

    A text may hold ``${NAME}``, which stands for the environment variable; ``$${`` is written for a plain ``${``. Whoever shows a value
    shows it as written, so that no secret of the environment reaches a terminal or a log. Without an environment text is only text.
    """

    def __init__(self, text: str, environment: Mapping[str, str] | None = os.environ) -> None:
        self.mistakes: list[Mistake] = []
        self._references = environment is not None
        self._environment: Mapping[str, str] = environment or {}
        self._known: dict[int, Any] = {}
        self._open: set[int] = set()
        self._root = self._parse(text)
        self.unreadable = bool(self.mistakes)
        """Whether nothing can be said of what is in the file, because it is not YAML."""
        self.data: Any = self._value(self._root, ()) if self._root is not None else None

    def line(self, location: Location) -> int:
        """Return the line, from 1, of a value; of a missing one, the line of what should hold it. 0 in an empty file."""
        line = int(self._root.start_mark.line) + 1 if self._root is not None and location else 0
        for step in self._steps(location):
            line = int(step[0].start_mark.line) + 1
        return line

    def at(self, location: Location) -> Any:
        """Return the plain value at a location; None where the file has none."""
        value = self.data
        for part in location:
            if isinstance(value, dict):
                value = value.get(part)
            else:
                value = value[part] if isinstance(value, list) and isinstance(part, int) and part < len(value) else None
        return value

    def written(self, location: Location) -> str:
        """Return a scalar as the file has it, before references are resolved; empty for anything else."""
        node = self._node(location)
        return str(node.value) if isinstance(node, ScalarNode) else ""

    def conceal(self, text: str, location: Location) -> str:
        """Put the references back where a value of the environment that this part of the file uses shows in ``text``."""
        for name in sorted({name for scalar in _scalars(self._node(location), set()) for name in _REFERENCE.findall(scalar)}):
            value = self._environment.get(name, "")
            if len(value) >= _SHORTEST_SECRET:
                text = text.replace(value, f"${{{name}}}")
        return text

    def _parse(self, text: str) -> Node | None:
        if len(text) > _GREATEST_SIZE:
            self.mistakes.append(Mistake(0, "", f"is larger than {_GREATEST_SIZE} characters; this is not a configuration"))
            return None
        try:
            root: Node | None = YAML(typ="safe", pure=True).compose(text)
            line = too_many(root)
        except MarkedYAMLError as error:
            self.mistakes.append(_unreadable(error))
        except RecursionError:
            self.mistakes.append(Mistake(0, "", "is nested too deep; this is not a configuration"))
        except YAMLError as error:
            self.mistakes.append(Mistake(0, "", f"is not YAML: {' '.join(str(error).split())}"))
        else:
            if not line:
                return root
            self.mistakes.append(Mistake(line, "", TOO_MANY))
        return None

    def _value(self, node: Node, at: Location) -> Any:
        if isinstance(node, ScalarNode):
            return self._scalar(node, at)
        if id(node) not in self._known:
            if id(node) in self._open:
                self._mistake(node, at, "refers to itself; write the value out")
                return None
            self._open.add(id(node))
            self._known[id(node)] = self._sequence(node, at) if isinstance(node, SequenceNode) else self._mapping(node, at)
            self._open.remove(id(node))
        return self._known[id(node)]

    def _sequence(self, node: SequenceNode, at: Location) -> list[Any]:
        return [self._value(item, (*at, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: Node, at: Location) -> dict[Hashable, Any]:
        found: dict[Hashable, Any] = {}
        lines: dict[Hashable, int] = {}
        merged: list[Node] = []
        for key, value in node.value:
            if key.tag == _MERGE:
                merged.extend(value.value if isinstance(value, SequenceNode) else [value])
                continue
            name = self._key(key, at)
            if name in found:
                what = f"is already written on line {lines[name]}; keep one of the two"
                self._mistake(key, (*at, str(name)), what)
                continue
            lines[name] = int(key.start_mark.line) + 1
            found[name] = self._value(value, (*at, str(name)))
        for other in merged:
            inherited = self._value(other, at)
            if isinstance(inherited, dict):
                found = {**inherited, **found}
            else:
                self._mistake(other, at, "`<<` takes a mapping; write `<<: *name` of one that was marked with `&name`")
        return found

    def _key(self, node: Node, at: Location) -> str:
        if isinstance(node, ScalarNode):
            return str(node.value)
        self._mistake(node, at, "a key must be text; write `key: value`")
        return ""

    def _scalar(self, node: ScalarNode, at: Location) -> Any:
        if node.tag in _PLAIN:
            return self._plain(node, at)
        if node.tag not in _TEXT:
            self._mistake(node, at, f"has the tag {node.tag}; write it without a tag, in quotes if it is text")
            return None
        return _REFERENCE.sub(lambda found: self._resolved(found, node, at), node.value) if self._references else node.value

    def _plain(self, node: ScalarNode, at: Location) -> Any:
        try:
            value = YAML(typ="safe", pure=True).constructor.construct_object(node)
        except (ValueError, KeyError):  # an explicit tag that does not fit
            value = math.nan
        if isinstance(value, float) and not math.isfinite(value):
            self._mistake(node, at, f"{node.value} is not a number; write a finite one, or put text in quotes")
            return None
        return value

    def _resolved(self, found: re.Match[str], node: ScalarNode, at: Location) -> str:
        whole, name = found[0], found[1]
        if name is None:
            return "${"
        if not whole.endswith("}") or not _NAME.fullmatch(name):
            self._mistake(node, at, f"{whole} is no reference; write ${{NAME}} with a variable's name, or $${{ for a plain ${{")
        elif name not in self._environment:
            self._mistake(node, at, f"the environment has no variable {name}; set it before you start, or write the value here")
        else:
            return self._environment[name]
        return whole

    def _mistake(self, node: Node, at: Location, what: str) -> None:
        self.mistakes.append(Mistake(int(node.start_mark.line) + 1, spoken(at), what))

    def _node(self, location: Location) -> Node | None:
        steps = list(self._steps(location))
        if len(steps) < len(location):
            return None
        return steps[-1][1] if steps else self._root

    def _steps(self, location: Location) -> Iterator[tuple[Node, Node]]:
        """Yield (where it is written, its value) for each part of the location that the file has."""
        node = self._root
        for part in location:
            step = _step(node, part)
            if step is None:
                return
            yield step
            node = step[1]


def _step(node: Node | None, part: str | int, within: frozenset[int] = frozenset()) -> tuple[Node, Node] | None:
    if isinstance(node, SequenceNode):
        known = isinstance(part, int) and part < len(node.value)
        return (node.value[part], node.value[part]) if known else None
    if not isinstance(node, MappingNode):
        return None
    for key, value in node.value:
        if key.tag != _MERGE and isinstance(key, ScalarNode) and key.value == str(part):
            return key, value
    inherited = [value for key, value in node.value if key.tag == _MERGE]
    sources = [source for value in inherited for source in (value.value if isinstance(value, SequenceNode) else [value])]
    within |= {id(node)}  # a mapping that takes over itself
    steps = (_step(source, part, within) for source in sources if id(source) not in within)
    return next((step for step in steps if step is not None), None)


def _scalars(node: Node | None, seen: set[int]) -> Iterator[str]:
    """Yield each text below a node once, however often aliases lead to it."""
    if isinstance(node, ScalarNode):
        yield str(node.value)
    elif node is not None and id(node) not in seen:
        seen.add(id(node))
        for child in node.value:
            for part in child if isinstance(child, tuple) else (child,):
                yield from _scalars(part, seen)


def _unreadable(error: MarkedYAMLError) -> Mistake:
    mark, begun = error.problem_mark or error.context_mark, error.context_mark
    problem = " ".join(part for part in (error.context if isinstance(error, ComposerError) else "", error.problem) if part)
    since = f" (begun on line {begun.line + 1})" if begun is not None and mark is not None and begun.line != mark.line else ""
    hint = next((hint for words, hint in _HINTS if words in problem), "see the lines around it")
    return Mistake(int(mark.line) + 1 if mark is not None else 0, "", f"is not YAML here: {problem}{since}; {hint}")
