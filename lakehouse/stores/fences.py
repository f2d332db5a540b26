"""What keeps an older run from overwriting a newer one's days: transaction versions, looked up on one handle.

A handle shows one version of the table. A write that carries the table's next sequence, read from that handle,
lands only if no other replace has come since; so what was looked up there still holds when it lands.
"""

from deltalake import DeltaTable

from daybreak.errors import FenceRefusedError
from lakehouse.stores.store import StaleReadError, Transaction, commit_of, sequence_id
from lakehouse.stores.transactions import recorded_versions
from lakehouse.tables.registry import Table

NEWEST = 32


def sequence_of(table: Table, handle: DeltaTable) -> int:
    """The table's sequence as this handle shows it; 0 before the first replace."""
    return handle.transaction_version(sequence_id(table)) or 0


def require_free(table: Table, handle: DeltaTable, transaction: Transaction, *, or_ours: bool = False) -> None:
    """Passes when every transaction version is above what `handle` shows, or equal to it once we have claimed it.

    Raises:
        FenceRefusedError: naming the id, its recorded version and ours.
    """
    recorded = recorded_versions(handle, transaction.versions)
    ahead = {
        app_id: found - version
        for app_id, version in transaction.versions.items()
        if (found := recorded.get(app_id)) is not None and (found > version or (found == version and not or_ours))
    }
    if ahead:
        app_id = max(ahead, key=lambda each: ahead[each])
        raise FenceRefusedError(
            f"{table.name}: {app_id} is at version {recorded[app_id]}, so version {transaction.versions[app_id]} is "
            "refused; a newer run's result stays"
        )


def require_fresh(table: Table, handle: DeltaTable, sequence: int | None) -> None:
    """Passes when no day was replaced since `sequence`, or when that does not matter.

    Raises:
        StaleReadError: the rows were derived from a state that is gone.
    """
    found = sequence_of(table, handle)
    if sequence is not None and found != sequence:
        raise StaleReadError(
            f"{table.name}: another replace ({found}) followed the one that the rows derive from ({sequence}); "
            "derive them again"
        )


def holds_fences(handle: DeltaTable, transaction: Transaction) -> bool:
    """Whether each recorded version is exactly the transaction's: nobody has been there since."""
    return recorded_versions(handle, transaction.versions) == transaction.versions


def is_claimed(handle: DeltaTable, transaction: Transaction) -> bool:
    """Whether this very run has claimed the days and their rows never came, as after a crash between the two."""
    if not transaction.versions or transaction.run_id is None or not holds_fences(handle, transaction):
        return False
    for limit in (NEWEST, None):  # a long history is slow to read, and the claim is nearly always among the newest
        for commit in map(commit_of, handle.history(limit)):
            if transaction.run_id in (commit.claimed_by, commit.run_id):
                return commit.run_id is None
    return False
