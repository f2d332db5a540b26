-- name: placed
-- Every event with its own day. Integer arithmetic on microseconds: independent of time zones and of the
-- engine's own functions.
create or replace temp view placed as
select
    event_id, item_id, weight, received_at, source, "partition", "offset",
    epoch_us(occurred_at) as at_us,
    (epoch_us(occurred_at) - ((epoch_us(occurred_at) % 86400000000) + 86400000000) % 86400000000)
        // 86400000000 as own_day
from event_rows;

-- name: events
-- The bucket's events under their own day, and those of the look-back slice again under the day they can take
-- copies from. All copies of an event are in one bucket; with one bucket the hash is not asked for.
create or replace temp view events as
with source as (
    select * from placed
    where getvariable('buckets') = 1 or hash(event_id) % getvariable('buckets') = getvariable('bucket')
)
select *, own_day as counted_day from source
where own_day between getvariable('first_day') and getvariable('last_day')
union all
select *, own_day + 1 as counted_day from source
where own_day + 1 between getvariable('first_day') and getvariable('last_day')
  and at_us >= (own_day + 1) * 86400000000 - getvariable('lookback_us');

-- name: winners
-- Of the copies of an event the smallest by the order key. Only ids whose hash occurs more than once are
-- ordered; two ids that share a hash are ordered each by itself, so a collision changes nothing.
create or replace temp view winners as
with doubled as (
    select counted_day, hash(event_id) as id_hash from events group by all having count(*) > 1
),
first_copies as (
    select e.* from events e semi join doubled d
        on e.counted_day = d.counted_day and hash(e.event_id) = d.id_hash
    qualify row_number() over (
        partition by e.counted_day, e.event_id
        order by e.at_us, e.received_at, e.source, e."partition", e."offset"
    ) = 1
),
kept as (
    select counted_day, own_day, item_id, at_us, weight from events e anti join doubled d
        on e.counted_day = d.counted_day and hash(e.event_id) = d.id_hash
    union all
    select counted_day, own_day, item_id, at_us, weight from first_copies
)
select counted_day, item_id, at_us, weight from kept where own_day = counted_day;

-- name: hours
create or replace temp view hours as
select
    date '1970-01-01' + counted_day::integer as day,
    ((at_us - counted_day * 86400000000) // 3600000000)::integer as hour,
    item_id,
    sum(weight) as count,
    count(*) as event_count,
    min(at_us) as first_occurred_at_us,
    max(at_us) as last_occurred_at_us
from winners group by all;

-- name: hourly
create or replace temp table recounted_hourly as select * from hours;

-- name: hourly_next
insert into recounted_hourly select * from hours;

-- name: hourly_merged
create or replace temp table recounted_hourly as
select
    day, hour, item_id, sum(count) as count, sum(event_count)::bigint as event_count,
    min(first_occurred_at_us) as first_occurred_at_us, max(last_occurred_at_us) as last_occurred_at_us
from recounted_hourly group by all;

-- name: daily
create or replace temp table recounted_daily as
select
    day, item_id, sum(count) as count, sum(event_count)::bigint as event_count,
    min(first_occurred_at_us) as first_occurred_at_us, max(last_occurred_at_us) as last_occurred_at_us
from recounted_hourly group by all;

-- name: lists
create or replace temp table recounted_lists as
with counts as (
    select day, 'hour' as "window", hour, item_id, count from recounted_hourly
    union all
    select day, 'day', 0, item_id, count from recounted_daily
)
select
    day, "window", epoch_us(day::timestamp) + hour * 3600000000 as start_us, '' as dimension,
    row_number() over best_first as "position", item_id, count,
    rank() over (partition by day, "window", hour order by count desc) as "rank",
    count(*) over (partition by day, "window", hour) as population
from counts
window best_first as (partition by day, "window", hour order by count desc, item_id desc)
qualify "position" <= getvariable('depth');

-- name: staged_hourly
create or replace temp view staged_hourly as
select day, hour, item_id, count::hugeint as count, event_count,
    epoch_us(first_occurred_at) as first_occurred_at_us, epoch_us(last_occurred_at) as last_occurred_at_us
from hourly_counts;

-- name: staged_daily
create or replace temp view staged_daily as
select day, item_id, count::hugeint as count, event_count,
    epoch_us(first_occurred_at) as first_occurred_at_us, epoch_us(last_occurred_at) as last_occurred_at_us
from daily_counts;

-- name: staged_lists
create or replace temp view staged_lists as
select day, "window", epoch_us(bucket_start) as start_us, dimension, "position", item_id,
    count::hugeint as count, "rank", population
from top_lists;

-- name: day_rows
select date '1970-01-01' + own_day::integer as day, count(*) as row_count
from placed where own_day between getvariable('first_day') and getvariable('last_day') group by all;

-- name: minute
select item_id, sum(weight) as count, count(*) as event_count
from winners where at_us >= getvariable('start_us') and at_us < getvariable('end_us')
group by item_id order by count desc, item_id desc;
