-- Who was first on each board on each day?
-- Snapshots hold the published depth; `population` is everybody who was on the board.
select board, day, player_id, points, population
from board_snapshots
where period = day::varchar and position = 1
order by board, day;
