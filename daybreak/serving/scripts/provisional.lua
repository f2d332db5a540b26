-- Replaces one provisional list, its meta and its sketches, unless the day is exact.
-- KEYS: state, labels, top, meta, sketch, late
-- ARGV: label, list's TTL and day's TTL in ms, as_of, run_id, sketch, late sketch ('' = none), number of meta fields,
--       fields and values of meta, then score and member of each entry
-- Returns 1 when written, 0 when refused.
if redis.call('HGET', KEYS[1], 'state') == 'exact' then return 0 end

local ttl, day_ttl, fields = ARGV[2], ARGV[3], tonumber(ARGV[8])
redis.call('UNLINK', KEYS[3], KEYS[4], KEYS[5], KEYS[6])
local entries = 9 + 2 * fields
for first = entries, #ARGV, 2000 do
  redis.call('ZADD', KEYS[3], unpack(ARGV, first, math.min(first + 1999, #ARGV)))
end
redis.call('HSET', KEYS[4], unpack(ARGV, 9, entries - 1))
if ARGV[6] ~= '' then redis.call('SET', KEYS[5], ARGV[6], 'PX', ttl) end
if ARGV[7] ~= '' then redis.call('SET', KEYS[6], ARGV[7], 'PX', ttl) end
redis.call('PEXPIRE', KEYS[3], ttl)
redis.call('PEXPIRE', KEYS[4], ttl)

redis.call('SADD', KEYS[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], day_ttl)
redis.call('HSET', KEYS[1], 'state', 'provisional', 'generation', 0, 'lake_version', -1,
  'content_hash', '', 'as_of', ARGV[4], 'run_id', ARGV[5])
redis.call('PEXPIRE', KEYS[1], day_ttl)
return 1
