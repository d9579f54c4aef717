-- Lets a bucket whose persons and tokens are loaded answer, with no units yet.
-- KEYS: units, stream
-- ARGV: the consumer group
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('XGROUP', 'CREATE', KEYS[2], ARGV[1], '0', 'MKSTREAM')
  redis.call('HSET', KEYS[1], 'units', 0, 'granted', 0, 'revoked', 0)
end
return 'ok'
