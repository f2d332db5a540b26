-- When was the newest day's most played item played?
select hour, count, event_count
from hourly_counts
where day = (select max(day) from daily_counts)
  and item_id = (select item_id from top_of_day((select max(day) from daily_counts), k := 1))
order by hour;
