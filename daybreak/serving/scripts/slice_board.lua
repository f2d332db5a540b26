-- Reads places of a board with its meta, all of one moment.
-- KEYS: top, players, meta
-- ARGV: player, first and last place counted from the player's (0 = the player's own), and the index of the first
--       place (from 0) when the player is not there; -1 = then none
-- Returns {meta's fields and values, players, their details}, or nothing without a board or the player.
local meta = redis.call('HGETALL', KEYS[3])
if #meta == 0 then return false end

local first, last = tonumber(ARGV[2]), tonumber(ARGV[3])
local at = ARGV[1] ~= '' and redis.call('ZRANK', KEYS[1], ARGV[1])
if at then
  first, last = at + first, at + last
else
  local index = tonumber(ARGV[4])
  if index < 0 then return false end
  first, last = index, index + last - first
end
first = math.max(first, 0)
if last < first then return {meta, {}, {}} end

local players, details = redis.call('ZRANGE', KEYS[1], first, last), {}
for from = 1, #players, 4000 do
  local some = redis.call('HMGET', KEYS[2], unpack(players, from, math.min(from + 3999, #players)))
  for _, each in ipairs(some) do details[#details + 1] = each end
end
return {meta, players, details}
