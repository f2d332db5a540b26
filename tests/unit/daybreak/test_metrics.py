"""The list of metrics holds every one there is, by the rules of Prometheus."""

import re

from daybreak import metrics
from daybreak.metrics import METRICS, Counter, Gauge, Metrics


def test_every_metric_is_in_the_list_once() -> None:
    defined = [value for value in vars(metrics).values() if isinstance(value, Counter | Gauge)]
    assert list(METRICS) == defined
    assert len({each.name for each in METRICS}) == len(METRICS)


def test_names_are_as_prometheus_has_them() -> None:
    for each in METRICS:
        assert re.fullmatch("daybreak_[a-z]+(_[a-z]+)+", each.name)
        assert each.name.endswith("_total") is isinstance(each, Counter)
        assert each.unit in each.name.split("_"), each.name
        assert each.meaning.endswith(".")


def test_a_counter_starts_at_zero_and_a_gauge_is_none_until_it_is_set() -> None:
    found = Metrics()
    assert (found[metrics.EVENTS_READ], found[metrics.LIVE_BUCKETS]) == (0, None)
    found.add(metrics.EVENTS_READ, 2)
    found.add(metrics.EVENTS_READ)
    found.set(metrics.LIVE_BUCKETS, 7)
    found.set(metrics.LIVE_BUCKETS, 5)
    assert (found[metrics.EVENTS_READ], found[metrics.LIVE_BUCKETS]) == (3, 5)
