-- Takes what a claim gave back off its person's count, once for each claim and review.
-- KEYS: units, users, tokens
-- ARGV: user, quantity, claim id (with the review behind it where one took back what was used)
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HSETNX', KEYS[3], 'returned claim ' .. ARGV[3], 1) == 0 then
  return 'ok'
end
if redis.call('HINCRBY', KEYS[2], ARGV[1], -tonumber(ARGV[2])) <= 0 then
  redis.call('HDEL', KEYS[2], ARGV[1])
end
return 'ok'
