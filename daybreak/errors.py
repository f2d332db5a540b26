"""Every failure a user can meet, each with the exit code that a scheduler reads.

A message has three parts: what was refused, the value that did it, what to do. `did_you_mean` helps with the third
where a word was mistyped.
"""

from collections.abc import Iterable
from difflib import get_close_matches


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


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a refusal that names the nearest of the known words; empty where none is near.

    >>> did_you_mean("dya", ["minute", "hour", "day"])
    " (did you mean 'day'?)"
    >>> did_you_mean("century", ["minute", "hour", "day"])
    ''
    """
    letters = {each.lower(): str(each) for each in known}
    near = get_close_matches(word.lower(), letters, n=1, cutoff=0.6)
    return f" (did you mean {letters[near[0]]!r}?)" if near else ""
