"""unknown_tools: calls of tools that the model was not offered (spec section 4.2)."""

from typing import Final

from pipeline.model.run import Run
from pipeline.scorers.calls import describe
from pipeline.scorers.check import Check, Finding, Missing, check_of, measured, unknown

UNKNOWN_TOOLS: Final = "unknown_tools"


def unknown_tools_check() -> Check:
    """Return the check."""
    return check_of(UNKNOWN_TOOLS, {"rule": "calls of tools not offered", "version": 1}, unknown_tools)


def unknown_tools(run: Run) -> Finding | None:
    """Count calls, executed or not, of tools that were not offered; absent without calls, unknown where no offer was captured."""
    if not run.tool_calls:
        return None
    if not run.tools:
        return unknown(Missing.TOOLS_NOT_CAPTURED, "no span says which tools were offered", upper=float(len(run.tool_calls)))
    # Some frameworks call a sub-agent like a tool and list it nowhere (smolagents' managed agents).
    offered = {tool.name for tool in run.tools} | set(run.agents)
    strange = [call for call in run.tool_calls if call.name not in offered]
    if not strange:
        return measured(0.0, holds=True)
    names = ", ".join(sorted({call.name for call in strange}))
    return measured(float(len(strange)), holds=False, reason=f"called but not offered: {names}", evidence=describe(strange[0]))
