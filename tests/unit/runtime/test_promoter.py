"""Failing runs become golden candidates, and stop being ones when they fail no longer; nothing is written that says nothing new."""

from gate_worlds import DESK, HELP, SHOP, graded, merged, moved
from msgspec.structs import replace

from pipeline.model.golden import GoldenCase
from pipeline.model.version import TraceVersion
from pipeline.runtime.gates import Owns, everything
from pipeline.runtime.promoter import promote
from pipeline.stages.turn import touched_by
from sinks.memory_gates import MemoryGateStore


class World:
    """A store, and promotion of what is written to it."""

    def __init__(self) -> None:
        self.store = MemoryGateStore()
        self.written: list[int] = []

    async def write(self, *versions: TraceVersion, owns: Owns = everything) -> int:
        """Write versions, and promote. Returns how many cases changed."""
        await self.store.write(versions)
        return await promote(self.store, sorted({one for version in versions for one in touched_by(version)}), owns)

    async def cases(self) -> dict[str, GoldenCase]:
        return {case.input: case for case in await self.store.golden_cases("default")}

    async def told(self) -> dict[str, tuple[str, int]]:
        return {request: (case.state, case.runs) for request, case in (await self.cases()).items()}


def asking(version: TraceVersion, request: str) -> TraceVersion:
    """The same runs, asked something else."""
    return replace(version, runs=tuple(replace(one, run=replace(one.run, request=request)) for one in version.runs))


async def test_runs_that_fail_on_one_request_are_one_candidate() -> None:
    world = World()
    failing = [graded(number, SHOP, number, passes=False) for number in (0, 1, 2)]
    assert await world.write(*failing, graded(4, SHOP, 0)) == 2
    assert await world.told() == {"question 0": ("candidate", 2), "question 1": ("candidate", 1)}
    case = (await world.cases())["question 0"]
    assert case.representative == min(failing[index].runs[0].run.run_id for index in (0, 2))
    assert case.agent == "shop"


async def test_promoting_again_writes_nothing() -> None:
    world = World()
    failing = graded(0, SHOP, 0, passes=False)
    await world.write(failing)
    before = await world.cases()
    assert await world.write(failing) == 0
    assert await world.cases() == before


async def test_a_run_that_passes_in_a_later_version_withdraws_its_candidate_and_one_that_fails_again_renews_it() -> None:
    world = World()
    await world.write(graded(0, SHOP, 0, passes=False))
    assert await world.write(graded(0, SHOP, 0, facts=2)) == 1
    assert await world.told() == {"question 0": ("withdrawn", 0)}
    await world.write(graded(0, SHOP, 0, facts=3, passes=False))
    assert await world.told() == {"question 0": ("candidate", 1)}


async def test_the_candidate_of_a_run_that_was_merged_is_withdrawn_and_still_says_what_it_was() -> None:
    world = World()
    failing = graded(0, SHOP, 0, passes=False)
    await world.write(failing)
    (before,) = (await world.cases()).values()
    assert await world.write(merged(failing, 2)) == 1
    (after,) = (await world.cases()).values()
    assert (after.state, after.runs) == ("withdrawn", 0)
    assert replace(after, state=before.state, runs=before.runs, version=before.version) == before


async def test_a_run_that_turns_out_to_have_been_asked_something_else_moves_to_another_case() -> None:
    world = World()
    await world.write(graded(0, SHOP, 0, passes=False))
    (before,) = (await world.cases()).values()
    assert await world.write(asking(graded(0, SHOP, 0, facts=2, passes=False), "another question")) == 2
    assert await world.told() == {"question 0": ("withdrawn", 0), "another question": ("candidate", 1)}
    assert (await world.cases())["question 0"].provenance == before.provenance


async def test_a_case_whose_representative_is_elsewhere_is_made_of_it_all_the_same() -> None:
    world = World()
    runs = sorted((graded(number, SHOP, number, passes=False) for number in (0, 2)), key=lambda one: one.runs[0].run.run_id)
    await world.write(runs[0])
    await world.write(runs[1])  # another minute, so the first is not at hand
    (case,) = (await world.cases()).values()
    assert (case.representative, case.runs) == (runs[0].runs[0].run.run_id, 2)
    (first,) = runs[0].runs
    await world.write(replace(runs[0], facts=2, version=8, runs=(replace(first, version=8, failing=()),)))
    (case,) = (await world.cases()).values()
    assert (case.representative, case.runs) == (runs[1].runs[0].run.run_id, 1)
    assert case.provenance["trace_id"] == runs[1].trace_id


async def test_what_people_decided_stays_decided() -> None:
    world = World()
    await world.write(graded(0, SHOP, 0, passes=False))
    (case,) = (await world.cases()).values()
    await world.store.write_cases([replace(case, state="accepted", expected={"answer": "yes"}, version=case.version + 1)])
    await world.write(graded(2, SHOP, 0, passes=False))
    await world.write(graded(0, SHOP, 0, facts=2), graded(2, SHOP, 0, facts=2))
    (decided,) = (await world.cases()).values()
    assert (decided.state, decided.expected, decided.runs) == ("accepted", {"answer": "yes"}, 0)


async def test_minutes_without_failures_cost_one_question() -> None:
    world = World()
    assert await world.write(graded(0, SHOP, 0)) == 0
    assert await promote(world.store, []) == 0
    assert await world.cases() == {}


# Several owners of agents


def owner_of(*agents: str) -> Owns:
    return lambda _project, agent: agent in agents


async def test_of_a_run_that_turns_out_to_be_of_another_agent_each_owner_writes_its_own_case() -> None:
    world = World()
    before = graded(1, DESK, 0, passes=False)
    await world.write(before, owns=owner_of("desk"))
    after = moved(before, graded(1, HELP, 0, passes=False, facts=2))
    assert await world.write(after, owns=owner_of("shop")) == 0
    assert await world.write(after, owns=owner_of("desk")) == 1
    assert {case.agent: (case.state, case.runs) for case in world.store.cases.values()} == {"desk": ("withdrawn", 0)}
    assert [one.failing for one in world.store.members.values()] == [False]
    assert await world.write(after, owns=owner_of("help")) == 1
    assert {case.agent: (case.state, case.runs) for case in world.store.cases.values()} == {
        "desk": ("withdrawn", 0),
        "help": ("candidate", 1),
    }
    plain = World()
    await plain.write(before)
    await plain.write(after)
    assert (world.store.cases, world.store.members) == (plain.store.cases, plain.store.members)


async def test_a_case_that_was_not_written_before_its_owner_died_keeps_no_member_that_left() -> None:
    """Nothing says whose the case is by then, for its run is asked something else, of another agent."""
    for owner in ("desk", "help"):
        world = World()
        before = graded(1, DESK, 0, passes=False)
        await world.write(before)
        ids = [case.id for case in world.store.cases.values()]
        world.store.cases.clear()
        await world.write(
            asking(moved(before, graded(1, HELP, 0, passes=False, facts=2)), "something else"), owns=owner_of(owner)
        )
        (left,) = [one for (_, case_id, _), one in world.store.members.items() if case_id == ids[0]]
        assert not left.failing
        assert {case.agent for case in world.store.cases.values()} == ({"help"} if owner == "help" else set())
