"""Laws of evaluations: however runs arrive, every window has one, and made again from stored rows each is what it was."""

import asyncio
from collections.abc import Callable, Sequence

import pytest
from gate_owner_law import Delivery, at_once, deliver, deliveries, from_scratch, histories
from gate_worlds import DESK, SHOP, GateWorld, assert_same, graded
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipeline.model.evaluation import Evaluation
from pipeline.model.quality import QualitySpec
from pipeline.model.result import Outcome
from pipeline.model.version import TraceVersion
from pipeline.runtime import windows
from pipeline.runtime.evaluations import Evaluations
from pipeline.stages.reevaluate import Reevaluation
from pipeline.stages.verify import Cause
from pipeline.stages.window import windows_of

DEFAULT = {"default": QualitySpec()}
unhurried = settings(deadline=None, max_examples=60)


async def again(world: GateWorld, specs: dict[str, QualitySpec]) -> list[Reevaluation]:
    """Every evaluation that is stored, made again."""
    known = Evaluations(world.store, specs, "default")
    return [await known.again(project, name) for project, name in sorted(world.store.evaluations.held)]


def evaluated(world: GateWorld) -> set[tuple[str, str, int]]:
    return {(one.project, one.cohort.id, one.start_ns) for one in world.store.evaluations.held.values()}


async def _made_again(versions: Sequence[TraceVersion], how: Delivery) -> None:
    world = await deliver(versions, how)
    made = await again(world, DEFAULT)
    assert [one for one in made if not one.equal] == []
    assert evaluated(world) == {(key[0], key[1].id, key[-1]) for key in from_scratch(world.store)}
    plain = await deliver(versions, at_once(len(versions)))
    assert_same(world.store.evaluations.held, plain.store.evaluations.held)


def assert_evaluations_are_made_again(data: st.DataObject) -> None:
    versions = data.draw(histories())
    asyncio.run(_made_again(versions, data.draw(deliveries(len(versions)))))


@unhurried
@given(st.data())
def test_every_window_is_evaluated_and_made_again_it_is_what_is_stored(data: st.DataObject) -> None:
    assert_evaluations_are_made_again(data)


def _one_window_of_those_that_a_minute_is_in(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(windows, "windows_of", lambda minute, length: windows_of(minute, length)[:1])


def _what_was_amended_is_left(patch: pytest.MonkeyPatch) -> None:
    real = windows._evaluations
    seen: set[str] = set()

    def once(minutes: windows.Minutes, changed: windows.Minutes, length: int, how: windows.Evaluating) -> list[Evaluation]:
        made = [one for one in real(minutes, changed, length, how) if one.id not in seen]
        seen.update(one.id for one in made)
        return made

    patch.setattr(windows, "_evaluations", once)


@pytest.mark.parametrize("mutate", [_one_window_of_those_that_a_minute_is_in, _what_was_amended_is_left])
def test_a_mutant_breaks_the_law(mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    hasty = settings(phases=[Phase.generate], database=None, report_multiple_bugs=False, max_examples=200, deadline=None)
    with pytest.raises(AssertionError):
        hasty(given(st.data())(assert_evaluations_are_made_again))()


async def a_world() -> GateWorld:
    versions = [graded(number, SHOP, 0, passes=number != 3) for number in range(4)]
    return await deliver(versions, at_once(len(versions)))


async def test_a_result_that_was_changed_by_hand_is_named_by_the_input_that_it_moves() -> None:
    world = await a_world()
    assert all(one.equal for one in await again(world, DEFAULT))
    held = {(key.dimension, key.run_id): (project, key) for project, key in world.store.results}
    where = held[min(name for name in held if name[0] == "verdict")]
    row = world.store.results[where]
    assert row.result is not None
    other = {Outcome.PASS: Outcome.FAIL, Outcome.FAIL: Outcome.PASS, None: None}[row.result.outcome]
    world.store.results[where] = replace(row, result=replace(row.result, outcome=other))
    made = await again(world, DEFAULT)
    assert made
    for one in made:
        told = {each.what: (each.stored, each.again) for each in one.differences}
        assert told["inputs.pass_rate"] in (("0.75", "0.5"), ("0.75", "1"))
        assert {each.cause for each in one.differences} == {Cause.INPUT}


async def test_another_policy_is_named_part_by_part_and_changes_no_number_that_is_stored() -> None:
    world = await a_world()
    policies = {**DEFAULT, SHOP.agent: replace(QualitySpec(), least_n=3, budget_usd=None, safety_checks=("forbid",))}
    for one in await again(world, policies):
        told = {each.what: (each.cause, each.stored, each.again) for each in one.differences}
        assert told == {
            "spec.least_n": (Cause.SPEC, "10", "3"),
            "spec.safety_checks": (Cause.SPEC, "nothing", "forbid"),
        }
        assert one.score == one.again


async def test_a_stored_evaluation_that_was_changed_by_hand_is_named() -> None:
    world = await a_world()
    key, stored = next(iter(world.store.evaluations.held.items()))
    assert stored.quality is not None
    world.store.evaluations.held[key] = replace(stored, quality=replace(stored.quality, score=99))
    (told,) = (one for one in await again(world, DEFAULT) if one.id == stored.id)
    assert [(each.cause, each.what, each.stored) for each in told.differences] == [(Cause.SCORE, "score.score", "99")]
    forged = replace(stored.quality.inputs, pass_rate=stored.quality.inputs.pass_if_undecided_pass * 0)
    world.store.evaluations.held[key] = replace(stored, quality=replace(stored.quality, inputs=forged))
    (told,) = (one for one in await again(world, DEFAULT) if one.id == stored.id)
    assert {"inputs.pass_rate", "inputs: hash"} <= {each.what for each in told.differences}


async def test_results_that_expired_or_have_just_come_are_no_difference_and_no_equality() -> None:
    world = await a_world()
    gone = {key: row for key, row in world.store.results.items() if key[1].dimension != "tone"}
    rows, world.store.results = world.store.results, gone
    assert all("expired" in one.why_not and not one.equal for one in await again(world, DEFAULT))
    world.store.results = rows
    await world.store.write([graded(9, SHOP, 0), graded(8, DESK, 0)])
    assert all("not made of yet" in one.why_not for one in await again(world, DEFAULT))
