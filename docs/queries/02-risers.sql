-- Which items gained most against the day before?
-- An item that was not there the day before counts from 0; weights, not events, are compared.
with newest as (select max(day) as day from daily_counts),
now as (select item_id, count from daily_counts where day = (select day from newest)),
before as (select item_id, count from daily_counts where day = (select day - 1 from newest))
select now.item_id, now.count, now.count - coalesce(before.count, 0) as gained
from now left join before using (item_id)
order by gained desc, now.item_id
limit 10;
