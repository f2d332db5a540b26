-- How wrong were the provisional lists of each day, before the night replaced them?
-- recall: the share of the exact top k that the served list had; error_bound holds with the list's confidence.
select day, k, recall, max_overcount, error_bound
from error_over_time()
order by day;
