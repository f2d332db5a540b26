"""Event time: how far the events have come, and which of them jump too far ahead to be believed at once."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Micros = npt.NDArray[np.int64]

CONFIRMING: Final = 16
"""So many events in a row beyond the jump confirm it."""
STRIDE: Final = 65_536


@dataclass(frozen=True)
class Admitted:
    """Rows to be counted; `seen` is the watermark that each of them met, in microseconds."""

    rows: pa.Table
    seen: Micros


def micros_of(rows: pa.Table) -> Micros:
    """`occurred_at` in microseconds."""
    values: Micros = rows["occurred_at"].cast(pa.int64()).to_numpy()
    return values


class Watermark:
    """The latest `occurred_at` so far, save for jumps that nothing confirmed; it never goes back.

    An event more than `max_jump` after the watermark is held back. `CONFIRMING` such events in a row, or the
    end of the stream, confirm the jump (a closed Saturday), and all held are admitted in their order. An event
    within the jump contradicts it (one clock was wrong), and those held are `ahead`. What is admitted does not
    depend on how the stream was cut into batches.
    """

    def __init__(self, max_jump: int) -> None:
        self._max_jump = max_jump
        self._held: list[pa.Table] = []
        self._held_count = 0
        self.at: int | None = None
        self.ahead: list[pa.Table] = []

    @property
    def held_count(self) -> int:
        return self._held_count

    def admit(self, rows: pa.Table) -> list[Admitted]:
        """What of the held and the given rows is to be counted now; `ahead` gathers what never is."""
        done: list[Admitted] = []
        waiting = [rows]
        while waiting:
            part = waiting.pop()
            if part.num_rows > STRIDE:
                waiting += [part.slice(STRIDE), part.slice(0, STRIDE)]
            elif part.num_rows:
                waiting += self._step(part, done)
        return done

    def confirm(self) -> list[Admitted]:
        """The stream has ended: nothing contradicts what is held."""
        done: list[Admitted] = []
        while self._held:
            done += self.admit(self._release())
        return done

    def go_on(self, micros: int) -> list[Admitted]:
        """Event time goes on without an event; held rows that are no jump from there are to be counted now."""
        if self.at is None:
            return []
        self.at += micros
        if not self._held or int(micros_of(pa.concat_tables(self._held)).max()) - self.at > self._max_jump:
            return []
        return self.admit(self._take_held())

    def _step(self, rows: pa.Table, done: list[Admitted]) -> list[pa.Table]:
        """Deal with a first part of the rows; what remains, the next to be taken last."""
        occurred = micros_of(rows)
        if self.at is None:
            self.at = int(occurred[0])
        if self._held:
            return self._weigh(rows, occurred)
        running = np.maximum.accumulate(np.concatenate([[self.at], occurred]))
        seen = running[:-1]
        jumps = np.flatnonzero(occurred - seen > self._max_jump)
        end = int(jumps[0]) if len(jumps) else len(occurred)
        if end:
            done.append(Admitted(rows.slice(0, end), seen[:end]))
            self.at = int(running[end])
        if end < len(occurred):
            self._hold(rows.slice(end, 1))
            return [rows.slice(end + 1)]
        return []

    def _weigh(self, rows: pa.Table, occurred: Micros) -> list[pa.Table]:
        assert self.at is not None
        within = np.flatnonzero(occurred[:CONFIRMING] - self.at <= self._max_jump)
        run = int(within[0]) if len(within) else min(len(occurred), CONFIRMING)
        run = min(run, CONFIRMING - self._held_count)
        self._hold(rows.slice(0, run))
        rest = rows.slice(run)
        if self._held_count >= CONFIRMING:
            return [rest, self._release()]
        if rest.num_rows:
            self.ahead.append(self._take_held())
        return [rest]

    def _hold(self, rows: pa.Table) -> None:
        if rows.num_rows:
            self._held.append(rows)
            self._held_count += rows.num_rows

    def _release(self) -> pa.Table:
        """The held rows; their jump is confirmed, so event time is where the first of them is, or beyond."""
        assert self.at is not None
        held = self._take_held()
        self.at = max(self.at, int(micros_of(held).min()))
        return held

    def _take_held(self) -> pa.Table:
        held = pa.concat_tables(self._held)
        self._held, self._held_count = [], 0
        return held
