"""Transaction versions of many ids at once, as a handle's version of the table has them.

delta-rs reads the whole log anew for each id that it is asked for, 50 ms after a commit of 16,000 days. A night
over a century asks for 55,000: their `txn` actions are read here in one pass over the same files.
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

FEW = 8
"""So many ids are asked for one by one."""
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")


def recorded_versions(handle: DeltaTable, app_ids: Collection[str]) -> dict[str, int]:
    """The last recorded version of each of these ids that `handle` shows; those never seen are absent."""
    if len(app_ids) > FEW and (found := log_versions(handle)) is not None:
        return {app_id: found[app_id] for app_id in app_ids if app_id in found}
    asked = ((app_id, handle.transaction_version(app_id)) for app_id in app_ids)
    return {app_id: version for app_id, version in asked if version is not None}


def log_versions(handle: DeltaTable) -> dict[str, int] | None:
    """Every id with its version, from the log; None when a file of it is missing or is no log of ours."""
    log = Path(unquote(urlparse(handle.table_uri).path)) / "_delta_log"
    try:
        checkpoint, parts = newest_checkpoint(log, handle.version())
        found: dict[str, int] = {}
        for part in parts:
            column = pq.read_table(part, columns=["txn"])["txn"].combine_chunks().drop_null()
            ids, versions = (pc.struct_field(column, name).to_pylist() for name in ("appId", "version"))
            found.update(zip(ids, versions, strict=True))
        for version in range(checkpoint + 1, handle.version() + 1):
            with (log / f"{version:020}.json").open(encoding="utf-8") as commit:
                actions = (json.loads(line)["txn"] for line in commit if line.startswith('{"txn"'))
                found.update((action["appId"], action["version"]) for action in actions)
    except (OSError, KeyError, ValueError):
        return None
    return found


def newest_checkpoint(log: Path, version: int) -> tuple[int, list[Path]]:
    """The newest whole checkpoint up to `version` with its files; -1 without one."""
    parts: dict[tuple[int, int], list[Path]] = defaultdict(list)
    for file in log.glob("*.checkpoint*.parquet"):
        if (named := CHECKPOINT.fullmatch(file.name)) and int(named[1]) <= version:
            parts[int(named[1]), int(named[2] or 1)].append(file)
    whole = [(at, files) for (at, count), files in parts.items() if len(files) == count]
    return max(whole, default=(-1, []))
