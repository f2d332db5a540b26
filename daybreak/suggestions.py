"""What a mistyped word was probably meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


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
