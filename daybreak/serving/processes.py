"""What the system says of a process."""

from pathlib import Path


def started(pid: int) -> str | None:
    """When a process started, in the kernel's ticks; None when there is none (a zombie is none)."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if after_name[0] in "ZX" else after_name[19]
