"""Writers that meet: one wins, the other retries or fails with its reason; no row is lost or doubled."""

import threading
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from daybreak.errors import DaybreakError, FenceRefusedError, LakeFailedError
from lakehouse.engines.engine import Engine
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.stores.delta_spark import DeltaSparkStore
from lakehouse.stores.store import CommitConflictError, StaleReadError, Store, Transaction
from lakehouse.tables.registry import DAILY_COUNTS, ITEM_EVENTS
from tests.builders import events
from tests.contracts.stores import ONE, THREE, TWO, before_the_rows_land, content, daily, store_of

pytestmark = pytest.mark.slow

PAIRS = [("delta_rs", "delta_rs"), ("delta_rs", "delta_spark"), ("delta_spark", "delta_spark")]


@pytest.fixture(params=["delta_rs", "delta_spark"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    engine = request.getfixturevalue("spark_engine") if request.param == "delta_spark" else None
    return store_of(request.param, tmp_path / "lake", engine)


@pytest.fixture
def other(tmp_path: Path) -> DeltaRsStore:
    """Another process's store over the same lake."""
    return DeltaRsStore(tmp_path / "lake")


def fenced(version: int, run_id: str | None, *days: date) -> Transaction:
    return Transaction({f"daily_counts/{day}": version for day in days}, run_id, (days[0], days[-1]))


def at_once(*actions: Callable[[], object]) -> list[object]:
    """What each gave, or the failure that it ended with."""
    together, outcomes = threading.Barrier(len(actions)), [None] * len(actions)

    def act(number: int) -> None:
        together.wait(30)
        try:
            outcomes[number] = actions[number]()
        except DaybreakError as error:
            outcomes[number] = error

    threads = [threading.Thread(target=act, args=(number,)) for number in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


@pytest.mark.parametrize("kinds", PAIRS, ids="+".join)
def test_two_days_replaced_at_once_both_stay(kinds: tuple[str, str], tmp_path: Path, spark_engine: Engine) -> None:
    one, two = (store_of(kind, tmp_path / "lake", spark_engine) for kind in kinds)
    one.append(DAILY_COUNTS, daily((ONE, "old", 1), (TWO, "old", 1), (THREE, "kept", 1)))
    rows = {ONE: [(ONE, f"a{n}", n) for n in range(1, 40)], TWO: [(TWO, f"b{n}", n) for n in range(1, 40)]}
    versions = at_once(
        lambda: one.replace(DAILY_COUNTS, ONE, ONE, daily(*rows[ONE]), fenced(1, "r1", ONE)),
        lambda: two.replace(DAILY_COUNTS, TWO, TWO, daily(*rows[TWO]), fenced(1, "r2", TWO)),
    )
    assert len(set(versions)) == 2
    assert content(one) == sorted([*rows[ONE], *rows[TWO], (THREE, "kept", 1)])
    made = {commit.version: commit.run_id for commit in one.commits_after(DAILY_COUNTS, 1) if commit.run_id}
    assert made == dict(zip(versions, ["r1", "r2"], strict=True))


def test_of_overlapping_ranges_at_once_the_newer_run_stays(store: Store, other: DeltaRsStore) -> None:
    store.create(DAILY_COUNTS)
    older, newer = [(ONE, "old", 1), (TWO, "old", 1)], [(TWO, "new", 2), (THREE, "new", 2)]
    first, second = at_once(
        lambda: store.replace(DAILY_COUNTS, ONE, TWO, daily(*older), fenced(1, "older", ONE, TWO)),
        lambda: other.replace(DAILY_COUNTS, TWO, THREE, daily(*newer), fenced(2, "newer", TWO, THREE)),
    )
    assert isinstance(second, int), "the newer fence always passes"
    if isinstance(first, int):
        assert content(store) == [(ONE, "old", 1), *newer]
    else:
        assert isinstance(first, FenceRefusedError)
        assert content(store) == newer


def test_a_replace_against_appends_of_events_loses_and_doubles_none(store: Store, other: DeltaRsStore) -> None:
    def event(name: str, day: int) -> pa.Table:
        return events({"event_id": name, "occurred_at": f"2026-03-0{day} 10:00"})

    def append_all() -> dict[str, int]:
        return {f"{n}-{day}": other.append(ITEM_EVENTS, event(f"{n}-{day}", day)) for n in range(8) for day in (1, 2)}

    other.append(ITEM_EVENTS, pa.concat_tables([event("old-1", 1), event("old-2", 2)]))
    versions, replaced = at_once(
        append_all, lambda: store.replace(ITEM_EVENTS, ONE, ONE, event("whole", 1), Transaction({"item_events/1": 1}))
    )
    assert isinstance(versions, dict)
    assert isinstance(replaced, int)
    due = ["old-2", "whole", *(name for name, v in versions.items() if name.endswith("-2") or v > replaced)]
    assert sorted(store.read(ITEM_EVENTS)["event_id"].to_pylist()) == sorted(due)


@pytest.mark.parametrize("what", ["rows", "claim"])
def test_a_replace_from_a_stale_handle_is_refused_once_a_newer_run_was_there(
    store: Store, other: DeltaRsStore, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    store.append(DAILY_COUNTS, daily((ONE, "old", 1), (TWO, "old", 1)))
    newer = fenced(7, "newer", TWO)

    def newer_run() -> None:
        if what == "rows":
            other.replace(DAILY_COUNTS, TWO, TWO, daily((TWO, "new", 9)), newer)
        else:
            other.claim(DAILY_COUNTS, other.writable(DAILY_COUNTS), newer)

    before_the_rows_land(monkeypatch, store, newer_run)
    with pytest.raises(FenceRefusedError, match=f"daily_counts/{TWO} is at version 7, so version 6 is refused"):
        store.replace(DAILY_COUNTS, ONE, TWO, daily((ONE, "stale", 1)), fenced(6, "stale", ONE, TWO))
    assert content(store) == [(ONE, "old", 1), (TWO, "new", 9) if what == "rows" else (TWO, "old", 1)]


def test_a_replace_that_meets_another_day_an_append_and_a_compaction_is_tried_again(
    store: Store, other: DeltaRsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for item in "abc":
        store.append(DAILY_COUNTS, daily((ONE, item, 1), (TWO, item, 1)))

    def others() -> None:
        other.replace(DAILY_COUNTS, TWO, TWO, daily((TWO, "new", 9)), fenced(7, "newer", TWO))
        other.append(DAILY_COUNTS, daily((ONE, "late", 1), (TWO, "late", 1)))
        other.optimize(DAILY_COUNTS, ONE, ONE)

    before_the_rows_land(monkeypatch, store, others)
    store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "whole", 1)), fenced(6, "run", ONE))
    assert content(store) == [(ONE, "whole", 1), (TWO, "late", 1), (TWO, "new", 9)]
    assert store.commits_after(DAILY_COUNTS, -1)[-1].run_id == "run"


def test_a_twin_that_lands_first_wins(store: Store, other: DeltaRsStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same run, same fence: the twin of a Spark replace takes its claim up, as after a crash."""
    store.append(DAILY_COUNTS, daily((ONE, "old", 1)))
    twin = fenced(3, "run", ONE)
    before_the_rows_land(
        monkeypatch, store, lambda: other.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "first", 1)), twin)
    )
    with pytest.raises(FenceRefusedError, match=r"twin of run run|is at version 3, so version 3 is refused"):
        store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "second", 1)), twin)
    assert content(store) == [(ONE, "first", 1)]


def test_others_who_always_come_first_end_the_tries(
    store: Store, other: DeltaRsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append(DAILY_COUNTS, daily((ONE, "old", 1)))
    monkeypatch.setattr("lakehouse.stores.delta_rs.TRIES", 2)
    before_the_rows_land(
        monkeypatch,
        store,
        lambda: other.replace(DAILY_COUNTS, TWO, TWO, daily((TWO, "new", 1)), Transaction()),
        times=2,
    )
    with pytest.raises(CommitConflictError, match=r"daily_counts: another .* came first"):
        store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "b", 1)), fenced(1, "run", ONE))
    assert content(store) == [(ONE, "old", 1), (TWO, "new", 1)]


@pytest.mark.parametrize("finisher", ["delta_rs", "delta_spark"])
def test_a_claim_whose_rows_never_came_is_finished_by_its_run_alone(
    finisher: str, tmp_path: Path, spark_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of("delta_spark", tmp_path / "lake", spark_engine)
    start = store.append(DAILY_COUNTS, daily((ONE, "old", 1)))

    class KilledError(Exception):
        pass

    def killed(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as crashing:
        crashing.setattr(DeltaSparkStore, "_write", killed)
        with pytest.raises(KilledError):
            store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "new", 1)), fenced(3, "run", ONE))
    (claim,) = store.commits_after(DAILY_COUNTS, start)
    assert (claim.run_id, claim.claimed_by, claim.days) == (None, "run", (ONE, ONE))
    assert content(store) == [(ONE, "old", 1)], "a claim changes no row"
    finishing = store_of(finisher, tmp_path / "lake", spark_engine)
    for run_id in ("other", None):
        with pytest.raises(FenceRefusedError, match="is at version 3, so version 3 is refused"):
            finishing.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "x", 1)), fenced(3, run_id, ONE))
    finishing.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "new", 1)), fenced(3, "run", ONE))
    with pytest.raises(FenceRefusedError, match="is at version 3"):
        finishing.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "again", 1)), fenced(3, "run", ONE))
    assert content(store) == [(ONE, "new", 1)]
    assert [commit.run_id for commit in store.commits_after(DAILY_COUNTS, claim.version)] == ["run"]


def test_rows_derived_from_a_table_that_was_replaced_meanwhile_are_refused(
    store: Store, other: DeltaRsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append(DAILY_COUNTS, daily((ONE, "a", 1)))

    def derived(version: int) -> Transaction:
        return Transaction({"d": version}, "run", based_on=store.sequence(DAILY_COUNTS))

    store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "a", 2)), derived(1))
    before_the_rows_land(
        monkeypatch, store, lambda: other.replace(DAILY_COUNTS, TWO, TWO, daily((TWO, "b", 1)), Transaction())
    )
    with pytest.raises(StaleReadError, match="derive them again"):
        store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "a", 3)), derived(2))
    assert content(store) == [(ONE, "a", 2), (TWO, "b", 1)]
    store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "a", 4)), derived(2))
    assert content(store) == [(ONE, "a", 4), (TWO, "b", 1)]


def test_an_append_read_from_a_stream_that_meets_a_replace_appends_nothing_and_says_so(tmp_path: Path) -> None:
    store, other = DeltaRsStore(tmp_path / "lake"), DeltaRsStore(tmp_path / "lake")
    store.append(DAILY_COUNTS, daily((ONE, "old", 1)))
    rows = daily((TWO, "late", 1))

    def batches():
        at_once(lambda: other.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "new", 1)), Transaction()))
        yield from rows.to_batches()

    with pytest.raises(LakeFailedError, match="nothing was written, run again"):
        store.append(DAILY_COUNTS, pa.RecordBatchReader.from_batches(DAILY_COUNTS.schema, batches()))
    assert content(store) == [(ONE, "new", 1)]
