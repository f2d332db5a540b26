-- Puts all staged lists of a day into place at once: readers see the day before or the day after.
-- Every key is built from the prefixes given, which share one hash tag and so one slot.
-- KEYS: state, labels
-- ARGV: day's prefix, staged prefix, previous prefix, generation, lake_version, content_hash, run_id, as_of,
--       exact TTL and previous TTL in ms, then the labels
-- Returns {outcome, generation, lake_version}: 'swapped' (content changed), 'refreshed' (equal content),
--       'fenced' (a newer one is there), 'gone' (the staging has expired).
local state, labels = KEYS[1], KEYS[2]
local day, staged, previous = ARGV[1], ARGV[2], ARGV[3]
local generation, lake_version, content_hash, run_id = ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local exact_ttl, previous_ttl = ARGV[9], ARGV[10]

local was = redis.call('HMGET', state, 'state', 'generation', 'lake_version', 'content_hash', 'run_id')
local is_exact = was[1] == 'exact'
local is_equal = is_exact and was[4] == content_hash
if is_exact then
  if tonumber(lake_version) < tonumber(was[3]) or (not is_equal and tonumber(generation) < tonumber(was[2])) then
    return {'fenced', was[2], was[3]}
  end
  if is_equal then generation = was[2] end
end

local metas, names = {}, {}
for i = 11, #ARGV do
  names[#names + 1] = ARGV[i]
  metas[#metas + 1] = staged .. ARGV[i] .. ':meta'
end
if #metas > 0 and redis.call('EXISTS', unpack(metas)) < #metas then
  -- Sent twice by a client that lost the answer: the first one did it.
  if is_equal and was[5] == run_id then return {'refreshed', generation, lake_version} end
  return {'gone', generation, lake_version}
end

local function unlink(keys)
  for first = 1, #keys, 4000 do
    redis.call('UNLINK', unpack(keys, first, math.min(first + 3999, #keys)))
  end
end
local function move(from, to, ttl)
  if redis.call('EXISTS', from) == 1 then
    redis.call('RENAME', from, to)
    redis.call('PEXPIRE', to, ttl)
  end
end

local keeps_previous = is_exact and not is_equal
local old = redis.call('SMEMBERS', labels)
local dropped = {}
if keeps_previous then
  for _, label in ipairs(redis.call('SMEMBERS', previous .. 'labels')) do
    dropped[#dropped + 1] = previous .. label .. ':top'
    dropped[#dropped + 1] = previous .. label .. ':meta'
  end
  unlink(dropped)
  dropped = {}
  for _, label in ipairs(old) do
    move(day .. label .. ':top', previous .. label .. ':top', previous_ttl)
    move(day .. label .. ':meta', previous .. label .. ':meta', previous_ttl)
  end
  move(labels, previous .. 'labels', previous_ttl)
else
  for _, label in ipairs(old) do
    dropped[#dropped + 1] = day .. label .. ':top'
    dropped[#dropped + 1] = day .. label .. ':meta'
    if not is_exact then
      dropped[#dropped + 1] = day .. label .. ':sketch'
      dropped[#dropped + 1] = day .. label .. ':late'
    end
  end
  dropped[#dropped + 1] = labels
  unlink(dropped)
end

for _, label in ipairs(names) do
  move(staged .. label .. ':top', day .. label .. ':top', exact_ttl)
  redis.call('RENAME', staged .. label .. ':meta', day .. label .. ':meta')
  redis.call('PEXPIRE', day .. label .. ':meta', exact_ttl)
  if is_equal then redis.call('HSET', day .. label .. ':meta', 'generation', generation) end
end
if #names > 0 then
  redis.call('SADD', labels, unpack(names))
  redis.call('PEXPIRE', labels, exact_ttl)
end
redis.call('HSET', state, 'state', 'exact', 'generation', generation, 'lake_version', lake_version,
  'content_hash', content_hash, 'run_id', run_id, 'as_of', ARGV[8])
redis.call('PERSIST', state)
return {is_equal and 'refreshed' or 'swapped', generation, lake_version}
