-- Lets a bucket refuse what it can't serve for a while, since no units are left anywhere.
-- KEYS: units
-- ARGV: the least quantity to refuse; for how many milliseconds
local units = tonumber(redis.call('HGET', KEYS[1], 'units'))
if units and units < tonumber(ARGV[1]) then
  local now = redis.call('TIME')
  redis.call('HSET', KEYS[1], 'low', ARGV[1], 'until', now[1] * 1000 + math.floor(now[2] / 1000) + tonumber(ARGV[2]))
end
return 'ok'
