from datetime import date

from redis.crc import key_slot

from daybreak.serving import keys

DAY = date(2026, 3, 1)


def test_keys_are_as_documented():
    assert keys.items_key(DAY, "day", "top") == "daybreak:{items.2026-03-01}:day:top"
    assert keys.items_key(DAY, "minute.17.24", "meta") == "daybreak:{items.2026-03-01}:minute.17.24:meta"
    assert keys.state_key(DAY) == "daybreak:{items.2026-03-01}:state"
    assert keys.lease_key("night") == "daybreak:lease:night"
    assert keys.LATEST_EXACT_DAY == "daybreak:latest_exact_day"


def test_all_keys_of_a_day_lie_in_one_cluster_slot_whatever_they_are_called():
    day_keys = [
        keys.state_key(DAY),
        keys.labels_key(DAY),
        keys.staged_prefix(DAY, "run{1}") + "day:top",
        keys.previous_prefix(DAY) + "day:top",
        *(keys.items_key(DAY, "hour.17", part) for part in keys.PARTS),
    ]
    assert len({key_slot(key.encode()) for key in day_keys}) == 1
    assert key_slot(keys.state_key(DAY).encode()) != key_slot(keys.state_key(date(2026, 3, 2)).encode())
