-- Which items were seen for the first time on the newest corrected day?
select item_id, count
from daily_counts
where day = (select max(day) from daily_counts)
  and item_id not in (select item_id from daily_counts where day < (select max(day) from daily_counts))
order by count desc, item_id
limit 10;
