-- Takes units of one bucket for one person, once for each order token.
-- KEYS: units, users, tokens, stream of the bucket
-- ARGV: token (16 bytes), user, quantity, the most units a person may have, claim id, what else the stream is to say
-- Returns ok, same and a claim id, or why not: invalid, no_epoch, token_used, limit_reached, dry, sold_out
local quantity = tonumber(ARGV[3])
if not quantity or quantity < 1 or quantity % 1 ~= 0 then
  return 'invalid'
end
local bucket = redis.call('HMGET', KEYS[1], 'units', 'low', 'until')
local units = tonumber(bucket[1])
if not units then
  return 'no_epoch'
end
local known = redis.call('HGET', KEYS[3], ARGV[1])
if known then
  local claim, content = string.match(known, '^(%d+) (.*)$')
  if content == ARGV[2] .. ' ' .. ARGV[3] then
    return 'same ' .. claim
  end
  return 'token_used'
end
local has = tonumber(redis.call('HGET', KEYS[2], ARGV[2]) or 0)
if has + quantity > tonumber(ARGV[4]) then
  return 'limit_reached'
end
if units < quantity then
  if bucket[2] and quantity >= tonumber(bucket[2]) then
    local now = redis.call('TIME')
    if now[1] * 1000 + now[2] / 1000 < tonumber(bucket[3]) then
      return 'sold_out'
    end
  end
  return 'dry'
end
redis.call('HINCRBY', KEYS[1], 'units', -quantity)
redis.call('HINCRBY', KEYS[2], ARGV[2], quantity)
local claim = ARGV[5] .. ' ' .. ARGV[2] .. ' ' .. ARGV[3]
redis.call('HSET', KEYS[3], ARGV[1], claim)
redis.call('XADD', KEYS[4], '*', 'claim', claim .. ' ' .. ARGV[1] .. ARGV[6])
return 'ok'
