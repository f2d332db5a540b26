-- Puts a staged board into place: readers see the one before or the new one.
-- KEYS: state; top, players, histogram, meta; the same four as staged
-- ARGV: state, version, generation (0 = the next one), lake_version, content_hash, run_id, as_of, TTL in ms
-- Returns {outcome, generation, version, lake_version}: 'swapped' (content changed), 'refreshed' (equal content),
--       'closed' (a higher version is there), 'fenced' (newer events or a higher generation are there),
--       'gone' (the staging has expired).
local state = KEYS[1]
local version, generation, lake_version = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local is_equal = false
local was = redis.call('HMGET', state, 'version', 'generation', 'lake_version', 'content_hash', 'run_id')
if was[1] then
  local had_version, had_generation, had_lake = tonumber(was[1]), tonumber(was[2]), tonumber(was[3])
  local function refused(why) return {why, had_generation, had_version, had_lake} end
  is_equal = was[4] == ARGV[5]
  -- A higher version (a close, an amendment) wins even when an open board of newer events came between.
  if version < had_version then return refused('closed') end
  if version == had_version then
    if lake_version < had_lake then return refused('fenced') end
    if not is_equal and generation > 0 and generation < had_generation then return refused('fenced') end
  end
  generation = is_equal and had_generation or math.max(generation, had_generation + 1)
end
generation = math.max(generation, 1)
if redis.call('EXISTS', KEYS[9]) == 0 then
  -- Sent twice by a client that lost the answer: the first one did it.
  local outcome = is_equal and was[5] == ARGV[6] and 'refreshed' or 'gone'
  return {outcome, generation, version, lake_version}
end

redis.call('UNLINK', KEYS[2], KEYS[3], KEYS[4], KEYS[5])
for i = 2, 5 do
  if redis.call('EXISTS', KEYS[i + 4]) == 1 then
    redis.call('RENAME', KEYS[i + 4], KEYS[i])
    redis.call('PEXPIRE', KEYS[i], ARGV[8])
  end
end
redis.call('HSET', KEYS[5], 'generation', generation)
redis.call('HSET', state, 'state', ARGV[1], 'version', version, 'generation', generation,
  'lake_version', lake_version, 'content_hash', ARGV[5], 'run_id', ARGV[6], 'as_of', ARGV[7])
return {is_equal and 'refreshed' or 'swapped', generation, version, lake_version}
