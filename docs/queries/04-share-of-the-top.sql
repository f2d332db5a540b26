-- How much of each day do its ten most played items make up?
-- The population's total comes from daily_counts, which holds every item, not from the list.
select day, sum(count) filter (position <= 10) as top_ten, sum(count) as played,
       round(100.0 * sum(count) filter (position <= 10) / sum(count), 2) as percent
from (select day, count, row_number() over (partition by day order by count desc, item_id desc) as position from daily_counts)
group by day
order by day;
