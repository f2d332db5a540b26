-- Takes a lease that is free, or whose holder is known to be dead. Returns '' when taken, else the holder.
-- KEYS: lease   ARGV: holder, TTL in ms, dead holder ('' = none)
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] and (ARGV[3] == '' or held ~= ARGV[3]) then return held end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ''
