-- name: hours
create or replace temp view hours as
select
    date '1970-01-01' + counted_day::integer as day,
    ((occurred_us - counted_day * 86400000000) // 3600000000)::integer as hour,
    item_id,
    sum(weight) as count,
    count(*) as event_count,
    min(occurred_us) as first_occurred_us,
    max(occurred_us) as last_occurred_us
from first_copies group by all;

-- name: hourly
create or replace temp table recounted_hourly as select * from hours;

-- name: hourly_next
insert into recounted_hourly select * from hours;

-- name: hourly_merged
create or replace temp table recounted_hourly as
select
    day, hour, item_id, sum(count) as count, sum(event_count)::bigint as event_count,
    min(first_occurred_us) as first_occurred_us, max(last_occurred_us) as last_occurred_us
from recounted_hourly group by all;

-- name: daily
create or replace temp table recounted_daily as
select
    day, item_id, sum(count) as count, sum(event_count)::bigint as event_count,
    min(first_occurred_us) as first_occurred_us, max(last_occurred_us) as last_occurred_us
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
    epoch_us(first_occurred_at) as first_occurred_us, epoch_us(last_occurred_at) as last_occurred_us
from hourly_counts;

-- name: staged_daily
create or replace temp view staged_daily as
select day, item_id, count::hugeint as count, event_count,
    epoch_us(first_occurred_at) as first_occurred_us, epoch_us(last_occurred_at) as last_occurred_us
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
from first_copies where occurred_us >= getvariable('start_us') and occurred_us < getvariable('end_us')
group by item_id order by count desc, item_id desc;
