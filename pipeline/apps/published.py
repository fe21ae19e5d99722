"""Published: which windows there are. No windows of a dimension that does not exist is a mistake, not an answer."""

from typing import NamedTuple, Self

from pipeline.apps.parts import WINDOW
from pipeline.config.duration import spoken_duration
from pipeline.config.grading import graders_of
from pipeline.config.mistake import nearest
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError
from pipeline.model.window import Window
from pipeline.stages.gate import lengths_of
from sinks.clickhouse.window_table import WindowTable


class Published(NamedTuple):
    """The dimensions and the lengths, in ns, that windows have by the configuration in force; those of earlier ones are stored."""

    dimensions: frozenset[str] = frozenset()
    lengths: frozenset[int] = frozenset()

    @classmethod
    def by(cls, settings: TracegradeSettings) -> Self:
        """Return what a configuration publishes."""
        dimensions = {name for one in graders_of(settings).values() for name in one.dimensions}
        return cls(frozenset(dimensions), frozenset({WINDOW, *lengths_of(settings.gates)}))

    async def latest(
        self, windows: WindowTable, project: str, dimension: str, length_ns: int, agent: str, limit: int
    ) -> list[Window]:
        """Return the windows of a dimension that start last.

        Raises:
            ConfigurationError: there are none, and can be none: nothing has this dimension, or no window this length.
        """
        found = await windows.latest(project, dimension, length_ns, agent, limit)
        if not found:
            stored = await windows.stored(project)
            dimensions = sorted(self.dimensions | {name for name, _ in stored})
            lengths = sorted(self.lengths | {length for _, length in stored})
            if dimension not in dimensions:
                near = nearest(dimension, dimensions) or ";"
                raise ConfigurationError(f"no run has a dimension {dimension!r}{near} they have: {', '.join(dimensions)}")
            if length_ns not in lengths:
                said = ", ".join(map(spoken_duration, lengths))
                raise ConfigurationError(
                    f"no windows of {spoken_duration(length_ns)} are published, but of {said}; a gate that reads others publishes them"
                )
        return found
