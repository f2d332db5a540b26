"""What a night makes of boards: which periods, partials of days, ranks, snapshots."""
