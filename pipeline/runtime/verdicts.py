"""Verdicts: stored runs explained and compared, from what is stored alone."""

from pipeline.errors import ConfigurationError
from pipeline.model.comparison import Comparison
from pipeline.model.contract import Contract
from pipeline.model.result import Kind
from pipeline.model.verdict import StructuredVerdict, Subject
from pipeline.stages.compare import compare
from pipeline.stages.stored_grades import StoredGrades
from pipeline.stages.verdict import structured_verdict
from sinks.clickhouse.run_detail import RunDetail
from sinks.clickhouse.store import Store


class Verdicts:
    """Reads runs with what they were graded under. It writes nothing."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def one(self, project: str, prefix: str) -> StructuredVerdict:
        """Return the structured verdict on the run whose id starts with ``prefix``.

        Raises:
            ConfigurationError: there is none, there are several, or it was merged into another one.
        """
        return structured_verdict(await self._grades(project, prefix))

    async def compared(self, project: str, first: str, second: str, *, across_contracts: bool = False) -> Comparison:
        """Compare the second run with the first.

        Raises:
            ConfigurationError: one of them cannot be had, or they cannot be compared.
        """
        grades = [await self._grades(project, prefix) for prefix in (first, second)]
        return compare(*grades, across_contracts=across_contracts)

    async def _grades(self, project: str, prefix: str) -> StoredGrades:
        detail = await self._store.run_detail(project, prefix)
        if not detail.live:
            raise ConfigurationError(
                f"run {detail.line.run_id} was merged into run {detail.merged_into or 'none'} and has no verdict; ask for that one"
            )
        contract = await self._contract(detail)
        rubric = await self._store.rubrics.of(contract.rubric_hash) if contract is not None else None
        return StoredGrades(
            subject=_subject(project, detail),
            results=detail.results,
            judgments=detail.judgments,
            agent_models=detail.models,
            graded_ns=detail.graded_ns,
            contract=contract,
            rubric=rubric,
            revision=detail.revision,
        )

    async def _contract(self, detail: RunDetail) -> Contract | None:
        stored = await self._store.contracts()
        named = next((one.contract for one in detail.results if one.kind is Kind.VERDICT), "")
        return stored.get(named)


def _subject(project: str, detail: RunDetail) -> Subject:
    cohort = detail.line.cohort
    return Subject(
        project=project,
        run_id=detail.line.run_id,
        run_version=detail.version,
        trace_id=detail.line.trace_id,
        agent=cohort.agent,
        agent_version=cohort.version,
        environment=cohort.environment,
        request=detail.request,
        answer=detail.answer,
        transcript_hash=detail.transcript_hash,
    )
