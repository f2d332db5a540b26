-- name: merged
-- Rows of one player on one board, added up by the board's semantics: events to a day, days to a period.
-- `slot` is the season label or the period. An event is the smallest such row, so one rule serves both.
create or replace temp macro merged(relation) as table
with source as (
    select s.*, b.semantics, b.sign from query_table(relation) s join boards b on s.board = b.board
),
by_points as (
    select day, board, slot, player_id, points, sign, sum(event_count) as event_count,
        min(first_us) as first_us, min(changed_us) as changed_us
    from source where semantics = 'best' group by all
),
newest as (
    select day, board, slot, player_id, sum(event_count) as event_count, min(first_us) as first_us,
        max({'at': changed_us, 'occurred': last_occurred_us, 'received': last_received_us, 'source': last_source,
            'partition': last_partition, 'offset': last_offset, 'points': points}) as event
    from source where semantics = 'latest' group by all
)
select day, board, slot, player_id, sum(points) as points, sum(event_count)::bigint as event_count,
    min(first_us) as first_us, max(changed_us) as changed_us,
    null::bigint as last_received_us, null::varchar as last_source, null::integer as last_partition,
    null::bigint as last_offset, null::bigint as last_occurred_us
from source where semantics = 'sum' group by all
union all
select day, board, slot, player_id, max(points * sign) * any_value(sign), sum(event_count)::bigint,
    min(first_us), arg_max(changed_us, points * sign), null, null, null, null, null
from by_points group by day, board, slot, player_id
union all
select day, board, slot, player_id, event.points, event_count::bigint, first_us, event.at,
    event.received, event.source, event."partition", event."offset", event.occurred
from newest;

-- name: counted score_events
-- The part's first copies that are not void; points as whole numbers of ten-thousandths.
create or replace temp table counted as
select
    counted_day, player_id, (points::decimal(28, 4) * 10000::decimal(5, 0))::hugeint as points,
    occurred_us, received_us, source, "partition", "offset",
    region, match_type, null::varchar as category, season
from first_copies where event_id not in (select event_id from voids);

-- name: counted item_events
create or replace temp table counted as
select
    counted_day, item_id as player_id, weight::hugeint * 10000 as points,
    occurred_us, received_us, source, "partition", "offset",
    region, null::varchar as match_type, category, null::varchar as season
from first_copies where event_id not in (select event_id from voids);

-- name: units
-- Each event once for every board and label that it counts for.
create or replace temp view units as
with chosen as (
    select
        date '1970-01-01' + e.counted_day::integer as day, b.board, l.label as slot, e.player_id, e.points,
        case when b.reached_by = 'received_at' then e.received_us else e.occurred_us end as at_us, b.semantics,
        e.occurred_us, e.received_us, e.source, e."partition", e."offset"
    from counted e
    join boards b on b.source = getvariable('source')
        and (len(b.region) = 0 or list_contains(b.region, e.region))
        and (len(b.match_type) = 0 or list_contains(b.match_type, e.match_type))
        and (len(b.category) = 0 or list_contains(b.category, e.category))
        and (len(b.season) = 0 or list_contains(b.season, e.season))
    join labels l on l.board = b.board and (l.label = '' or l.label = e.season)
)
select
    day, board, slot, player_id, points, 1 as event_count, at_us as first_us,
    case when semantics <> 'sum' or points <> 0 then at_us end as changed_us,
    received_us as last_received_us, source as last_source, "partition" as last_partition,
    "offset" as last_offset, occurred_us as last_occurred_us
from chosen;

-- name: partials
create or replace temp table partials as select * from merged('units');

-- name: next_partials
insert into partials select * from merged('units');

-- name: recounted_days
create or replace temp table recounted_days as
select * exclude (slot), slot as season, day as on_day from merged('partials');

-- name: staged_days
create or replace temp view staged_days as
select day, on_day, board, season, player_id,
    (points * 10000::decimal(5, 0))::hugeint as points, event_count,
    epoch_us(first_at) as first_us, epoch_us(changed_at) as changed_us,
    epoch_us(last_received_at) as last_received_us, last_source, last_partition, last_offset,
    epoch_us(last_occurred_at) as last_occurred_us
from player_days;

-- name: all_days
-- Staged and committed partials alike; the files of a lake's day tell it as `on_day`.
create or replace temp view all_days as
select * exclude (day) from staged_days
union all by name
select on_day, board, season, player_id,
    (points * 10000::decimal(5, 0))::hugeint as points, event_count,
    epoch_us(first_at) as first_us, epoch_us(changed_at) as changed_us,
    epoch_us(last_received_at) as last_received_us, last_source, last_partition, last_offset,
    epoch_us(last_occurred_at) as last_occurred_us
from committed_days;

-- name: close_calendar
-- The days of one period: each that has partials of its board and label.
insert into calendar
select distinct d.board, d.season, d.on_day, $period, $day::date, $period_end
from all_days d where d.board = $board and d.season = $label and d.on_day between $first and $last;

-- name: in_periods
-- Each day's row once for each period that it counts in; banned players are out of periods that end later.
create or replace temp view in_periods as
select c.day, d.board, c.period as slot, d.player_id, d.points, d.event_count, d.first_us, d.changed_us,
    d.last_received_us, d.last_source, d.last_partition, d.last_offset, d.last_occurred_us
from all_days d
join calendar c on c.board = d.board and c.season = d.season and c.on_day = d.on_day
where not exists (
    from bans b where b.player_id = d.player_id and (c.period_end_us is null or c.period_end_us > b.since_us)
);

-- name: totals
create or replace temp table totals as
select day, board, slot as period, player_id, points, coalesce(changed_us, first_us) as reached_us, event_count
from merged('in_periods');

-- name: standings
-- Every player in order: points by the board's sign, its tie-breaks in turn, then the bytes of player_id.
create or replace temp view standings as
with keyed as (
    select t.*, b.rank_style, b.depth, -b.sign * t.points as points_key,
        case b.break_1 when 'reached_at' then t.reached_us when 'fewer_events' then t.event_count
            when 'more_events' then -t.event_count end as key_1,
        case b.break_2 when 'reached_at' then t.reached_us when 'fewer_events' then t.event_count
            when 'more_events' then -t.event_count end as key_2,
        case b.break_3 when 'reached_at' then t.reached_us when 'fewer_events' then t.event_count
            when 'more_events' then -t.event_count end as key_3
    from totals t join boards b on b.board = t.board
),
placed as (
    select *,
        row_number() over best_first as "position",
        rank() over by_points as competition,
        dense_rank() over by_points as dense,
        count(*) over by_points as upto,
        count(*) over (partition by day, board, period) as population
    from keyed
    window
        best_first as (partition by day, board, period order by points_key, key_1, key_2, key_3, player_id),
        by_points as (partition by day, board, period order by points_key)
)
select day, board, period, "position", player_id, points, reached_us, event_count,
    case rank_style when 'competition' then competition when 'dense' then dense else "position" end as "rank",
    population, (100 * (population - upto))::double / population::double as percentile, depth
from placed;

-- name: recounted_snapshots
create or replace temp table recounted_snapshots as
select * exclude (percentile, depth), day as as_of from standings where "position" <= depth;

-- name: recounted_histograms
create or replace temp table recounted_histograms as
select day, board, period, points, count(*) as players, day as as_of from totals group by all;

-- name: recounted_ranks
create or replace temp table recounted_ranks as
select * exclude (depth), getvariable('version') as version, getvariable('lake_version') as lake_version from standings;

-- name: ranked
-- The (day, board, period) whose rows are compared: here all that have any.
create or replace temp table ranked as
select day, board, period from board_snapshots union select day, board, period from board_histograms;

-- name: staged_snapshots
create or replace temp view staged_snapshots as
select s.* exclude (points, reached_at),
    (s.points * 10000::decimal(5, 0))::hugeint as points, epoch_us(s.reached_at) as reached_us
from board_snapshots s semi join ranked r on s.day = r.day and s.board = r.board and s.period = r.period;

-- name: staged_histograms
create or replace temp view staged_histograms as
select h.* exclude (points), (h.points * 10000::decimal(5, 0))::hugeint as points
from board_histograms h semi join ranked r on h.day = r.day and h.board = r.board and h.period = r.period;

-- name: staged_ranks
create or replace temp view staged_ranks as
select * exclude (points, reached_at),
    (points * 10000::decimal(5, 0))::hugeint as points, epoch_us(reached_at) as reached_us
from season_ranks;
