"""Aliases of YAML: a few lines can stand for billions of values. What they come to is counted before anybody follows them."""

from typing import Final

from ruamel.yaml.nodes import Node, ScalarNode

MOST: Final = 100_000
"""Values that the aliases of one file may add to the written ones: every reader walks them one by one."""


TOO_MANY: Final = f"too many aliases: they stand for more than {MOST} values; write out what is meant"


def too_many(root: Node | None) -> int:
    """Return the line, from 1, where the aliases of a document have come to more than :data:`MOST` values; 0 where they do not.

    It takes as long as the document is written, whatever it comes to. What refers to itself is left to who reads it.
    """
    found = _over(root, {}) if root is not None else None
    return int(found.start_mark.line) + 1 if found is not None else 0


def _over(node: Node, sizes: dict[int, int]) -> Node | None:
    """Return the first node that comes to too much; ``sizes`` gathers what each node comes to, by its id."""
    if id(node) in sizes:
        return None
    sizes[id(node)] = 1
    if not isinstance(node, ScalarNode):
        parts = [part for one in node.value for part in (one if isinstance(one, tuple) else (one,))]
        for part in parts:
            if (found := _over(part, sizes)) is not None:
                return found
        sizes[id(node)] += sum(sizes[id(part)] for part in parts)
    return node if sizes[id(node)] > MOST + len(sizes) else None
