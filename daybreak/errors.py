"""Every failure a user can meet, each with the exit code that a scheduler reads.

A message has three parts: what was refused, the value that did it, what to do.
"""


class DaybreakError(Exception):
    """The root; by itself it is a bug of ours (exit 1)."""

    exit_code = 1


class UsageError(DaybreakError):
    """The command line or a setting makes no sense (exit 2)."""

    exit_code = 2


class InputIncompleteError(DaybreakError):
    """The day's input has not all arrived (exit 3): try later, or allow it to be incomplete."""

    exit_code = 3


class CheckFailedError(DaybreakError):
    """What was computed does not hold (exit 4): nothing of it was committed or published."""

    exit_code = 4


class FenceRefusedError(DaybreakError):
    """A newer run was there first (exit 5): its result stays, this one is given up."""

    exit_code = 5


class UnreachableError(DaybreakError):
    """Redis or the event log does not answer (exit 6)."""

    exit_code = 6


class UnreadableInputError(DaybreakError):
    """A file that is not what it says it is (exit 7): nothing of it was taken in."""

    exit_code = 7


class LakeFailedError(DaybreakError):
    """The lake or the engine failed (exit 8)."""

    exit_code = 8
