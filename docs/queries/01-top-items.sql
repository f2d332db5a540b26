-- Which items were played most on the newest corrected day?
-- `position` is unique, `rank` is shared by equal counts; ties go by item_id.
select position, rank, item_id, count
from top_of_day((select max(day) from daily_counts), k := 10)
order by position;
