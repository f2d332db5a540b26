-- On which boards are the first two of all time less than ten points apart?
select first.board, first.player_id as leader, second.player_id as runner_up, abs(first.points - second.points) as apart
from board_snapshots as first
join board_snapshots as second using (board, period, day)
where first.period = 'all_time' and first.position = 1 and second.position = 2
  and first.day = (select max(day) from board_snapshots where board = first.board and period = 'all_time')
  and abs(first.points - second.points) < 10
order by first.board;
