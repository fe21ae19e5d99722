"""The settings of a whole installation: what ``tracegrade.yaml`` holds. Each part is declared beside what it configures."""

from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from pipeline.config.bridge import BridgeSettings
from pipeline.config.kafka import KafkaSettings
from pipeline.config.quality import QualitySettings
from pipeline.config.receiver import ReceiverSettings
from pipeline.config.records import RecordSourceSettings
from pipeline.config.redaction import RedactionSettings
from pipeline.config.retention import RetentionSettings
from pipeline.config.store import StoreSettings
from pipeline.config.worker import WorkerSettings
from pipeline.errors import ConfigurationError
from pipeline.judges.rubric_file import SHIPPED
from pipeline.judges.settings import JudgeSettings
from pipeline.model.risk import Risk
from pipeline.model.settings import Project, Settings
from pipeline.scorers import ChecksSettings
from pipeline.scorers.prices import PricesSettings
from pipeline.stages.alert import AlertSettings
from pipeline.stages.close import AssembleSettings
from pipeline.stages.gate import FloorGate, Gate, HardGate
from pipeline.stages.sample import SampleSettings

DEFAULT: Final = "default"
"""The agent whose entry holds for every agent that has none of its own; also the project where none is named."""
FOREIGN: Final = "otlp_spans"
"""The topic that the OpenTelemetry Collector's kafka exporter writes to where nobody names another."""
SHIPPED_RUBRICS: Final = tuple(sorted(path.stem for path in SHIPPED.glob("*.yaml")))
"""Rubrics that can be named without a file."""
DEFAULT_GATES: Final[tuple[Gate, ...]] = (
    FloorGate(name="verdict-floor", kind="floor", dimension="verdict", raise_below=0.8, clear_above=0.9),
    HardGate(name="gating-checks", kind="hard"),
)


def _named_or_file(rubric: object) -> object:
    return Path(rubric) if isinstance(rubric, str) and rubric not in SHIPPED_RUBRICS else rubric


class AgentSettings(Settings):
    """How the runs of one agent are graded. An entry is complete: what it leaves out has the product's default."""

    rubric: Annotated[str | Path | None, BeforeValidator(_named_or_file)] = "support"
    """Name of a rubric that ships, or the path of a rubric file; ``null`` to have nothing judged."""
    risk: Risk | None = None
    """What a bad output costs: ``internal_draft``, ``customer_facing`` or ``moves_money``; it sets the rubric's bar and its least gates."""
    sampling: SampleSettings = SampleSettings()
    """Which of its runs are judged."""
    checks: ChecksSettings = ChecksSettings()
    """What is checked on every run, without a model."""
    references: Path | None = None
    """A file of requests with their right answers, for the dimensions of the rubric that have ``reference``."""
    quality: QualitySettings | None = None
    """What its quality scores weigh, in place of ``quality`` at the top."""


class TracegradeSettings(Settings):
    """Everything that can be configured."""

    project: Project = DEFAULT
    """Project of all spans while the receiver has no keys, and of what the commands show."""
    store: StoreSettings = StoreSettings()
    """Where everything is remembered."""
    retention: RetentionSettings = RetentionSettings()
    """How long it is remembered."""
    kafka: KafkaSettings | None = None
    """Where records travel between collectors and workers; ``tracegrade up`` needs none."""
    worker: WorkerSettings = WorkerSettings()
    """How a worker can be asked whether it is well."""
    bridge: BridgeSettings = BridgeSettings()
    """Which topics a bridge reads that others write, such as OpenTelemetry Collectors."""
    receiver: ReceiverSettings = Field(default=ReceiverSettings(), validate_default=True)
    """Where spans are accepted, and from whom."""
    redaction: RedactionSettings = RedactionSettings()
    """What is replaced in everything that is accepted, before it is stored or published."""
    assemble: AssembleSettings = AssembleSettings()
    """How long a run is waited for."""
    agents: dict[Annotated[str, Field(min_length=1)], AgentSettings] = Field(default={})
    """By the agent's name as its spans give it. The entry ``default`` holds for every agent without an entry of its own."""
    records: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")], RecordSourceSettings] = Field(default={})
    """Where checks may read what an agent's calls came to, by a name of lower-case letters, digits and underscores."""
    judge: JudgeSettings = JudgeSettings()
    """Which model judges, and what its word is worth."""
    prices: PricesSettings = PricesSettings()
    """What models cost, beside the price table that ships."""
    quality: QualitySettings = QualitySettings()
    """What quality scores weigh."""
    gates: tuple[Gate, ...] = DEFAULT_GATES
    """What is watched, and when it trips. Written gates replace the two default ones; an empty list switches gates off."""
    alerts: tuple[AlertSettings, ...] = ()
    """Who is told when a gate trips or clears."""

    @field_validator("receiver")
    @classmethod
    def _has_the_project(cls, receiver: ReceiverSettings, info: ValidationInfo) -> ReceiverSettings:
        """Give the receiver the project that is written at the top, unless it names one itself."""
        if "project" in receiver.model_fields_set or "project" not in info.data:
            return receiver
        return receiver.model_copy(update={"project": info.data["project"]})

    def entry_of(self, agent: str) -> str:
        """Return the key of the entry that holds for an agent: its own, else ``default``, whether that one is written or not."""
        return agent if agent in self.agents else DEFAULT

    def agent(self, agent: str) -> AgentSettings:
        """Return how an agent's runs are graded."""
        return self.agents.get(self.entry_of(agent), _UNWRITTEN)

    def kafka_or_refuse(self) -> KafkaSettings:
        """Return where the brokers are, for a command that needs them.

        Raises:
            ConfigurationError: nobody wrote that.
        """
        if self.kafka is None:
            raise ConfigurationError('the configuration names no Kafka cluster; write kafka: {brokers: ["host:9092"]} in it')
        return self.kafka

    @property
    def bridged(self) -> dict[str, str]:
        """The topics that bridges read, each with its project."""
        return dict(self.bridge.topics) or {FOREIGN: self.project}

    @property
    def entries(self) -> dict[str, AgentSettings]:
        """The entries by agent, ``default`` always among them."""
        return {DEFAULT: self.agent(DEFAULT), **self.agents}


_UNWRITTEN: Final = AgentSettings()
