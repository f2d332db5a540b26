"""What a night makes of item events: counts, lists, checks, the comparison with what was served."""
