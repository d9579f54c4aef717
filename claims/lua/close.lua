-- Lets a bucket sell no more, and forgets all but what its stream still holds.
-- KEYS: units, users, tokens, stream
-- Returns how many entries the stream holds; where it holds none, or is no stream any more, it is gone too
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
local entries = redis.pcall('XLEN', KEYS[4])
if type(entries) == 'table' then
  if not string.find(entries['err'], '^WRONGTYPE') then
    return entries
  end
  entries = 0
end
if entries == 0 then
  redis.call('DEL', KEYS[4])
end
return entries
