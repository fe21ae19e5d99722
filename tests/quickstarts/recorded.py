"""Run a page's program with its tools recorded: who was called, with what, and what it returned or raised. Knows nothing but Python.

``RECORD=FILE python recorded.py APP QUESTION``. The program stays as it is on the page but for one decorator, innermost on each tool.
"""

import ast
import functools
import inspect
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOOLS = ("lookup_order", "issue_refund")
RECORD, APP = os.environ["RECORD"], sys.argv[1]


def recorded(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Return the tool, writing down each call of it when it is over."""

    @functools.wraps(tool)
    def call(*given: Any, **named: Any) -> Any:
        entry: dict[str, Any] = {
            "tool": tool.__name__,
            "arguments": dict(inspect.signature(tool).bind(*given, **named).arguments),
        }
        try:
            entry["result"] = tool(*given, **named)
        except Exception as error:
            entry["error"] = str(error)
            raise
        finally:
            with Path(RECORD).open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        return entry["result"]

    return call


tree = ast.parse(Path(APP).read_text(encoding="utf-8"))
for node in tree.body:
    if isinstance(node, ast.FunctionDef) and node.name in TOOLS:
        node.decorator_list.append(ast.copy_location(ast.Name("recorded", ast.Load()), node))
del sys.argv[0]
sys.path[0] = str(Path(APP).parent)
program = {"__name__": "__main__", "__file__": APP, "recorded": recorded}
exec(compile(tree, APP, "exec"), program)  # noqa: S102 - what a user pastes
