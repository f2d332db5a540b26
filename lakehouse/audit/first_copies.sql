-- name: placed
-- Every event with its own day. Integer arithmetic on microseconds: independent of time zones and of the
-- engine's own functions.
create or replace temp view placed as
select
    * exclude (occurred_at, received_at),
    epoch_us(occurred_at) as occurred_us, epoch_us(received_at) as received_us,
    (epoch_us(occurred_at) - ((epoch_us(occurred_at) % 86400000000) + 86400000000) % 86400000000)
        // 86400000000 as own_day
from event_rows;

-- name: events
-- The part's events under their own day, and those of the look-back slice again under the day they can take
-- copies from. All copies of an event are in one part; with one part the hash is not asked for.
create or replace temp view events as
with source as (
    select * from placed
    where getvariable('parts') = 1 or hash(event_id) % getvariable('parts') = getvariable('part')
)
select *, own_day as counted_day from source
where own_day between getvariable('first_day') and getvariable('last_day')
union all
select *, own_day + 1 as counted_day from source
where own_day + 1 between getvariable('first_day') and getvariable('last_day')
  and occurred_us >= (own_day + 1) * 86400000000 - getvariable('lookback_us');

-- name: first_copies
-- Of the copies of an event the smallest by the order key. Only ids whose hash occurs more than once are
-- ordered; two ids that share a hash are ordered each by itself, so a collision changes nothing.
create or replace temp view first_copies as
with doubled as (
    select counted_day, hash(event_id) as id_hash from events group by all having count(*) > 1
),
smallest as (
    select e.* from events e semi join doubled d
        on e.counted_day = d.counted_day and hash(e.event_id) = d.id_hash
    qualify row_number() over (
        partition by e.counted_day, e.event_id
        order by e.occurred_us, e.received_us, e.source, e."partition", e."offset"
    ) = 1
),
kept as (
    select e.* from events e anti join doubled d
        on e.counted_day = d.counted_day and hash(e.event_id) = d.id_hash
    union all
    select * from smallest
)
select * from kept where own_day = counted_day;
