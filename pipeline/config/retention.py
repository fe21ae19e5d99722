"""How long what was received is kept."""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from pipeline.model.settings import Duration, Project, Settings
from pipeline.model.time import DAY

LEAST: Final = 7 * DAY
"""What a worker that was away for a week still finds (:data:`~pipeline.config.kafka.LEAST_RETENTION`)."""
RUNS_LONGER: Final = 30 * DAY
"""How much longer runs and results are kept than the spans that they were made of."""


def _long_enough(kept: int) -> int:
    if kept < LEAST:
        raise ValueError(
            "spans are kept for at least 7d: what a worker reads late must still be there to be graded; write 7d or more"
        )
    return kept


Kept = Annotated[Duration, AfterValidator(_long_enough)]


class RetentionSettings(Settings):
    """How long facts are kept. Runs, results and places stay 30 days longer; what runs add up to and golden cases stay."""

    spans: Kept = 30 * DAY
    """How long spans are kept, and log records, feedback, judgments, transcripts and the judge's calls; at least seven days. Runs and results stay 30 days longer."""
    projects: Mapping[Project, Kept] = Field(default={})
    """The same for single projects, by name."""

    def of(self, project: str) -> int:
        """Return how long a project's facts are kept, in ns."""
        return self.projects.get(project, self.spans)
