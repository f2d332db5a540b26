-- At which hours of the day (UTC) is most played, over all corrected days?
select hour, sum(count) as played, count(distinct day) as days
from hourly_counts
group by hour
order by played desc, hour
limit 5;
