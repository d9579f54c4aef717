-- Lets a bucket sell no more, and forgets all but what its stream still holds.
-- KEYS: units, users, tokens, stream
-- Returns how many entries the stream holds; where it holds none, it is gone too
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
local entries = redis.call('XLEN', KEYS[4])
if entries == 0 then
  redis.call('DEL', KEYS[4])
end
return entries
