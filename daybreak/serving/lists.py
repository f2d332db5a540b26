"""Lists in Redis: read with their meta, published provisional one by one, published exact a day at once.

- A reader sees the day before a publication or after it: never empty, torn or mixed
  (`test_serving_publication_under_readers`, `test_serving_crashes`).
- A provisional write to an exact day is refused, and an exact one from older events too
  (`test_serving_lists`); the fence has no TTL.
- One `ZREVRANGE` of the sorted set is the list in its total order: count, then UTF-8 bytes of the id, descending.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from importlib.resources import files
from typing import Any, Literal

import redis

from daybreak import settings
from daybreak.crashpoints import crash_point
from daybreak.errors import CheckFailedError, FenceRefusedError
from daybreak.serving import keys
from daybreak.serving.client import reaches_redis
from daybreak.serving.hashes import STAGING_TTL, from_texts, millis, to_texts
from daybreak.windows import Bucket, Window, bucket_of_label

Entry = tuple[str, int]
SCORE_LIMIT = 2**53
"""Scores are doubles: from here on not every integer has one."""
LABELS_AT_ONCE = 32
"""Lists read in one transaction by `served`; more would hold up other readers."""


@dataclass(frozen=True)
class Meta:
    """What is known of a list. `lake_version` is -1 and `generation` 0 while it is provisional."""

    state: Literal["provisional", "exact"]
    generation: int
    as_of: datetime
    complete_through: datetime | None
    run_id: str
    lake_version: int
    events_total: int
    items_total: int | None
    total_weight: int
    depth: int
    error_bound: float
    confidence: float
    content_hash: str
    provenance: Literal["pairs", "cells", "exact"]
    accounting: str

    def to_fields(self) -> dict[str, str]:
        """The fields of the Redis hash; what is not known is the empty string."""
        return to_texts(asdict(self))

    @classmethod
    def from_fields(cls, found: dict[bytes, bytes]) -> "Meta":
        """The inverse of `to_fields`. A hash that lacks a field is refused with CheckFailedError."""
        return from_texts(cls, found, _READ, "a list's meta")


@dataclass(frozen=True)
class ServedList:
    """A list as it is served: (item_id, count or estimate), best first, in the total order."""

    bucket: Bucket
    entries: tuple[Entry, ...]
    meta: Meta


@dataclass(frozen=True)
class DayState:
    """The control record of a day."""

    state: Literal["provisional", "exact"]
    generation: int
    lake_version: int
    content_hash: str
    run_id: str
    as_of: datetime


@dataclass(frozen=True)
class Publication:
    """What the publication of a whole exact day says of itself; `content_hash` is that of all its lists."""

    generation: int
    run_id: str
    lake_version: int
    as_of: datetime
    content_hash: str

    def stamped(self, each: ServedList) -> ServedList:
        """The list as part of this publication; it keeps a content hash of its own."""
        stamp = {name: value for name, value in asdict(self).items() if name != "content_hash"}
        return replace(each, meta=replace(each.meta, **stamp))


def content_hash(entries: Iterable[Entry]) -> str:
    """sha256 over each id's byte length, bytes and count, in order: equal for equal lists only."""
    raw = ((item_id.encode(), count) for item_id, count in entries)
    return hashlib.sha256(b"".join(b"%d:%b%d;" % (len(item), item, count) for item, count in raw)).hexdigest()


class Lists:
    """All access to the lists in Redis."""

    def __init__(self, client: redis.Redis, settings: settings.Redis) -> None:
        self.client = client
        self.settings = settings
        scripts = files("daybreak.serving") / "scripts"
        self._provisional, self._swap, self._forward = (
            client.register_script((scripts / f"{name}.lua").read_text()) for name in ("provisional", "swap", "forward")
        )

    @reaches_redis
    def publish_provisional(
        self,
        bucket: Bucket,
        entries: Sequence[Entry],
        meta: Meta,
        sketch: bytes | None = None,
        late_sketch: bytes | None = None,
    ) -> bool:
        """Whether the list was written; False when its day is exact already.

        List, meta and sketches are replaced together; sketches not given are removed, being of an older list.

        Raises:
            CheckFailedError: an estimate that a score cannot hold (2^53 and more).
        """
        if too_big := _too_big(entries):
            raise CheckFailedError(_too_big_message(bucket, too_big) + "; the list is not published")
        pairs = [text for name_value in meta.to_fields().items() for text in name_value]
        scores = [text for item_id, count in entries for text in (str(count), item_id.encode())]
        is_minute = bucket.window is Window.MINUTE
        ttl = self.settings.minute_ttl if is_minute else self.settings.provisional_ttl
        day_ttl = max(self.settings.provisional_ttl, self.settings.minute_ttl)
        written = self._provisional(
            keys=[
                keys.state_key(bucket.day),
                keys.labels_key(bucket.day),
                *(keys.items_key(bucket.day, bucket.label, part) for part in keys.PARTS),
            ],
            args=[
                *(bucket.label, millis(ttl), millis(day_ttl), meta.as_of.isoformat(), meta.run_id),
                *(sketch or b"", late_sketch or b"", len(pairs) // 2),
                *pairs,
                *scores,
            ],
        )
        return bool(written)

    @reaches_redis
    def publish_exact(self, day: date, lists: Sequence[ServedList], publication: Publication) -> bool:
        """Whether the day's content changed; all lists of the day are replaced in one step.

        Staged, read back and compared, then swapped by one script, which also drops every other list of the
        day and all its sketches. One earlier exact generation is kept for `previous_ttl`. Equal content
        (`content_hash` of the whole day) keeps its generation; the pointer to the latest day moves afterwards.

        Raises:
            FenceRefusedError: Redis holds lists of newer events or of a higher generation; nothing changed.
            CheckFailedError: what was staged reads back differently, and nothing changed; or, after all else
                was published, a count of 2^53 and more, whose list is left out.
        """
        too_big = {each.bucket: found for each in lists if (found := _too_big(each.entries))}
        fitting = [publication.stamped(each) for each in lists if each.bucket not in too_big]
        staged = keys.staged_prefix(day, publication.run_id)
        self._stage(staged, fitting)
        self._compare(staged, fitting)
        crash_point("publish.staged")
        is_changed = self._swap_in(day, fitting, publication)
        crash_point("publish.swapped")
        self._forward(keys=[keys.LATEST_EXACT_DAY], args=[day.isoformat()])
        crash_point("publish.pointer")
        if too_big:
            messages = "; ".join(_too_big_message(bucket, found) for bucket, found in too_big.items())
            raise CheckFailedError(
                f"{messages}; that list is left out, the rest of {day} is published: read it with sql"
            )
        return is_changed

    @reaches_redis
    def read(self, bucket: Bucket) -> ServedList | None:
        """The list of a bucket with its meta, both of one moment; None when there is none."""
        return self._read([bucket])[0]

    @reaches_redis
    def read_sketch(self, bucket: Bucket) -> tuple[bytes | None, bytes | None]:
        """The bucket's sketch and late sketch, serialised, where the stream has closed it."""
        sketch, late = self.client.mget([keys.items_key(bucket.day, bucket.label, part) for part in ("sketch", "late")])
        return sketch, late

    @reaches_redis
    def served(self, day: date, windows: Collection[Window] = tuple(Window)) -> list[ServedList]:
        """Every list of the day, the day's own first, then hours, then minutes; all of one publication."""
        while True:
            before = self.day_state(day)
            labels = [label.decode() for label in self.client.smembers(keys.labels_key(day))]
            buckets = sorted(
                (bucket for label in labels if (bucket := bucket_of_label(day, label)).window in windows),
                key=lambda b: (-b.window.microseconds, b.start),
            )
            found: list[ServedList | None] = []
            for first in range(0, len(buckets), LABELS_AT_ONCE):
                found += self._read(buckets[first : first + LABELS_AT_ONCE])
            if _identity(before) == _identity(self.day_state(day)):
                return [each for each in found if each is not None]

    @reaches_redis
    def day_state(self, day: date) -> DayState | None:
        """The day's control record; None when nothing was ever published for it or only long ago, provisionally."""
        found = {name.decode(): value.decode() for name, value in self.client.hgetall(keys.state_key(day)).items()}
        if not found:
            return None
        return DayState(
            state="exact" if found["state"] == "exact" else "provisional",
            generation=int(found["generation"]),
            lake_version=int(found["lake_version"]),
            content_hash=found["content_hash"],
            run_id=found["run_id"],
            as_of=datetime.fromisoformat(found["as_of"]),
        )

    def _read(self, buckets: Sequence[Bucket]) -> list[ServedList | None]:
        with self.client.pipeline(transaction=True) as together:
            for bucket in buckets:
                together.zrevrange(keys.items_key(bucket.day, bucket.label, "top"), 0, -1, withscores=True)
                together.hgetall(keys.items_key(bucket.day, bucket.label, "meta"))
            answers = together.execute()
        return [
            ServedList(bucket, _entries(top), Meta.from_fields(meta)) if meta else None
            for bucket, top, meta in zip(buckets, answers[::2], answers[1::2], strict=True)
        ]

    def _stage(self, prefix: str, lists: Sequence[ServedList]) -> None:
        self._drop(prefix, lists)
        with self.client.pipeline(transaction=False) as together:
            for each in lists:
                top, meta = _staged_keys(prefix, each)
                if each.entries:
                    together.zadd(top, {item_id.encode(): count for item_id, count in each.entries})
                    together.pexpire(top, millis(STAGING_TTL))
                together.hset(meta, mapping=each.meta.to_fields())
                together.pexpire(meta, millis(STAGING_TTL))
            together.execute()

    def _compare(self, prefix: str, lists: Sequence[ServedList]) -> None:
        with self.client.pipeline(transaction=False) as together:
            for each in lists:
                top, meta = _staged_keys(prefix, each)
                together.zrevrange(top, 0, -1, withscores=True)
                together.hgetall(meta)
            answers = together.execute()
        for each, top_answer, meta_answer in zip(lists, answers[::2], answers[1::2], strict=True):
            entries = _entries(top_answer)
            if entries != each.entries or Meta.from_fields(meta_answer) != each.meta:
                raise CheckFailedError(
                    f"the staged list {each.bucket.label} of {each.bucket.day} reads back differently "
                    f"({len(entries)} entries of {len(each.entries)}); nothing was published: give its entries in the "
                    "total order, each item once, and publish again"
                )

    def _swap_in(self, day: date, lists: Sequence[ServedList], new: Publication) -> bool:
        """Whether what was swapped in has other content than what stood there."""
        staged = keys.staged_prefix(day, new.run_id)
        outcome, have_generation, have_version = self._swap(
            keys=[keys.state_key(day), keys.labels_key(day)],
            args=[
                *(keys.day_prefix(day), staged, keys.previous_prefix(day)),
                *(new.generation, new.lake_version, new.content_hash, new.run_id, new.as_of.isoformat()),
                *(millis(self.settings.exact_ttl), millis(self.settings.previous_ttl)),
                *(each.bucket.label for each in lists),
            ],
        )
        if outcome == b"fenced":
            self._drop(staged, lists)
            raise FenceRefusedError(
                f"Redis serves {day} from events at lake version {int(have_version)}, generation "
                f"{int(have_generation)}; lake version {new.lake_version}, generation {new.generation} of run "
                f"{new.run_id} is older and was not published; nothing to do, or run the night again to publish the "
                "newest events"
            )
        if outcome == b"gone":
            raise CheckFailedError(
                f"the staged lists of {day} (run {new.run_id}) went away before they were swapped in; "
                "the old ones still stand: publish again"
            )
        return bool(outcome == b"swapped")

    def _drop(self, prefix: str, lists: Sequence[ServedList]) -> None:
        if names := [name for each in lists for name in _staged_keys(prefix, each)]:
            self.client.unlink(*names)


def _staged_keys(prefix: str, each: ServedList) -> tuple[str, str]:
    return f"{prefix}{each.bucket.label}:top", f"{prefix}{each.bucket.label}:meta"


def _entries(answer: Iterable[tuple[bytes, float]]) -> tuple[Entry, ...]:
    return tuple((item_id.decode(), int(count)) for item_id, count in answer)


def _too_big(entries: Iterable[Entry]) -> Entry | None:
    return next((entry for entry in entries if entry[1] >= SCORE_LIMIT), None)


def _too_big_message(bucket: Bucket, entry: Entry) -> str:
    item_id, count = entry
    return (
        f"list {bucket.label} of {bucket.day}: {item_id!r} counts {count}, and Redis scores are exact below 2^53 only"
    )


def _identity(state: DayState | None) -> tuple[str, int, int, str] | None:
    return (state.state, state.generation, state.lake_version, state.content_hash) if state else None


_READ: dict[str, Any] = {
    "state": str,
    "generation": int,
    "as_of": datetime.fromisoformat,
    "complete_through": lambda text: datetime.fromisoformat(text) if text else None,
    "run_id": str,
    "lake_version": int,
    "events_total": int,
    "items_total": lambda text: int(text) if text else None,
    "total_weight": int,
    "depth": int,
    "error_bound": float,
    "confidence": float,
    "content_hash": str,
    "provenance": str,
    "accounting": str,
}
