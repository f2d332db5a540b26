-- How many rows of each day were copies of an event that had been counted already?
-- From the newest run of each day, as it recorded them: distinct + duplicate = rows.
select d.day, d."rows", d."distinct", d.duplicate
from (select committed_at, run_id, unnest(days) as d from runs where kind = 'items')
qualify row_number() over (partition by d.day order by committed_at desc, run_id desc) = 1
order by d.day;
