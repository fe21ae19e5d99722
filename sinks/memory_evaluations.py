"""Evaluations in memory, with the rules of their table."""

from collections.abc import Sequence

from pipeline.model.evaluation import Evaluation


class MemoryEvaluations:
    """The quality scores of windows."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], Evaluation] = {}

    def write(self, evaluations: Sequence[Evaluation]) -> None:
        """Keep evaluations; what was made of more stays."""
        for one in evaluations:
            known = self.held.get((one.project, one.id))
            if known is None or known.version <= one.version:
                self.held[one.project, one.id] = one

    async def named(self, project: str, prefix: str, limit: int) -> list[Evaluation]:
        """Return the evaluations whose ids start with ``prefix``."""
        found = [one for (of, name), one in sorted(self.held.items()) if of == project and name.startswith(prefix)]
        return found[:limit]

    async def latest(self, project: str, agent: str = "", limit: int = 50) -> list[Evaluation]:
        """Return the evaluations of the windows that ended last; a window of nothing but retired rows is none."""
        found = [
            one
            for one in self.held.values()
            if one.project == project and agent in ("", one.cohort.agent) and one.rates["pass"].n
        ]
        return sorted(found, key=lambda one: (-one.end_ns, one.length_ns, one.id))[:limit]
