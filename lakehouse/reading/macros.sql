-- The usual questions, as DuckDB table macros over the analysts' views.

create temp macro top_of_day(on_day, k := 10) as table
    select position, rank, item_id, count, population
    from top_lists
    where day = on_day::date and "window" = 'day' and position <= k
    order by position;

create temp macro item_history(item) as table
    select day, count, event_count, first_occurred_at, last_occurred_at, is_complete
    from daily_counts
    where item_id = item
    order by day;

create temp macro error_over_time(of_window := 'day') as table
    select day, bucket_start, k, recall, precision, max_overcount, mean_overcount, error_bound, bound_coverage, late_weight
    from corrections
    where "window" = of_window
    qualify row_number() over (partition by day, bucket_start, dimension order by lake_version desc) = 1
    order by bucket_start;

create temp macro player_history(of_board, player) as table
    select period, day as as_of, position, rank, points, population
    from board_snapshots
    where board = of_board and player_id = player
    order by period, as_of;

create temp macro board_of(of_board, of_period, k := 10) as table
    select position, rank, player_id, points, population, day as as_of
    from board_snapshots
    where board = of_board and period = of_period and position <= k
    qualify day = max(day) over ()
    order by position;
