-- Prolongs a lease that is still ours (TTL > 0) or gives it back (TTL 0). Returns 1 when it was ours.
-- KEYS: lease   ARGV: holder, TTL in ms
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
