-- Moves a pointer forwards only; ISO days compare as text. Returns 1 when it moved.
-- KEYS: pointer   ARGV: day
local was = redis.call('GET', KEYS[1])
if was and was >= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1
