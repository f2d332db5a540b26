import numpy as np
import pyarrow as pa
import pytest

from daybreak.errors import UsageError
from streaming.sketches.count_min import (
    CountMinSketch,
    SketchDamagedError,
    SketchMismatchError,
    hash_ids,
    sizing,
    width_for,
)


@pytest.mark.parametrize(("error", "width"), [(0.2, 14), (0.1, 28), (0.05, 55), (0.01, 272)])
def test_width_is_e_over_the_relative_error(error: float, width: int) -> None:
    assert width_for(error) == width


def test_a_thousandth_with_99_percent_confidence_is_2719_by_5() -> None:
    sketch = CountMinSketch.from_error(0.001, 0.99)
    assert (sketch.width, sketch.depth) == (2719, 5)


def test_sizing() -> None:
    assert sizing(4, 1_000_000, 4) == 16_000_000
    assert sizing(4, 2_000_000, 4) == 32_000_000
    assert CountMinSketch(100, 4).memory_bytes == sizing(4, 100)


def test_three_weights_of_2_147_483_647_sum_past_32_bits() -> None:
    sketch = CountMinSketch(272, 5)
    sketch.update_ids(pa.array(["a"] * 3), np.array([2_147_483_647] * 3))
    assert sketch.estimate_ids(["a"]).tolist() == [6_442_450_941]
    assert sketch.total_weight == 6_442_450_941


def test_ids_are_told_apart_byte_for_byte() -> None:
    names = ["Lets\nCrash", "caf\u00e9", "cafe\u0301", "\U0001f680", "\u05e9\u05dc", "a", "A", "a ", "x" * 512]
    sketch = CountMinSketch(27_183, 5)
    sketch.update_ids(pa.array(names), np.arange(1, len(names) + 1))
    assert sketch.estimate_ids(names).tolist() == list(range(1, len(names) + 1))


def test_error_bound_and_confidence_follow_from_the_shape() -> None:
    sketch = CountMinSketch.from_error(0.01, 0.99)
    sketch.update(hash_ids(pa.array(["a", "b"])))
    assert sketch.relative_error <= 0.01
    assert sketch.confidence >= 0.99
    assert sketch.error_bound == sketch.relative_error * 2


def test_every_changed_byte_is_noticed() -> None:
    sketch = CountMinSketch(14, 2)
    sketch.update_ids(pa.array(["a", "b"]))
    data = sketch.serialize()
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1
        with pytest.raises(SketchDamagedError):
            CountMinSketch.deserialize(bytes(damaged))
    with pytest.raises(SketchDamagedError, match="no sketch"):
        CountMinSketch.deserialize(b"")


def test_lost_cells_proves_what_the_stream_never_saw() -> None:
    exact, stream = CountMinSketch(272, 5), CountMinSketch(272, 5)
    exact.update_ids(pa.array(["a", "a", "b"]))
    stream.update_ids(pa.array(["a", "b", "a"]))
    assert exact.lost_cells(stream) == 0
    exact.update_ids(pa.array(["b"]))
    assert exact.lost_cells(stream) == 5


def test_what_makes_no_sense_is_refused() -> None:
    sketch = CountMinSketch(14, 2)
    with pytest.raises(UsageError, match="weight -1"):
        sketch.update_ids(pa.array(["a"]), np.array([-1]))
    with pytest.raises(UsageError, match="1 weights for 2"):
        sketch.update_ids(pa.array(["a", "b"]), np.array([1]))
    with pytest.raises(UsageError, match="2\\^63"):
        sketch.update_ids(pa.array(["a", "b"]), np.array([2**62, 2**62]))
    with pytest.raises(UsageError, match="0 x 2"):
        CountMinSketch(0, 2)
    with pytest.raises(UsageError, match="1 nulls"):
        hash_ids(pa.array(["a", None]))
    other = CountMinSketch(14, 2)
    other.update_ids(pa.array(["z"]))
    with pytest.raises(SketchMismatchError, match="no part of"):
        sketch.subtract(other)
