-- Brings a bucket up to what it was granted in all, and takes back what it has left of it.
-- KEYS: units
-- ARGV: units granted in all; the most units to take back
-- Returns the units taken back in all and those that are left, or no_epoch
local bucket = redis.call('HMGET', KEYS[1], 'units', 'granted', 'revoked')
if not bucket[1] then
  return 'no_epoch'
end
local units, granted, revoked = tonumber(bucket[1]), tonumber(bucket[2]), tonumber(bucket[3])
local more = tonumber(ARGV[1]) - granted
if more > 0 then
  units = units + more
  granted = granted + more
  redis.call('HDEL', KEYS[1], 'low', 'until')
end
local back = math.max(0, math.min(units, tonumber(ARGV[2])))
units = units - back
revoked = revoked + back
redis.call('HSET', KEYS[1], 'units', units, 'granted', granted, 'revoked', revoked)
return {revoked, units}
