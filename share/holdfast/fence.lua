-- Holdfast's fence guard for Redis: a SET that is refused to a holder that has been replaced.
--
--     redis-cli --eval fence.lua KEY FENCE_KEY , FENCE VALUE [TTL_MS]
--
-- FENCE_KEY remembers the largest fence that has written.  It must never expire, and in a cluster
-- both keys need the same hash tag ({report}, {report}:fence).  If FENCE is the largest so far, or
-- equal to it, the script sets KEY and returns OK.  If it is lower, the script returns the error
-- STALEFENCE and writes nothing.  Fences are compared as text, since a Lua number is exact to 15
-- digits only.

local key, fence_key = KEYS[1], KEYS[2]
local fence, value, ttl_ms = ARGV[1], ARGV[2], ARGV[3]

if not key or not fence_key or not value or not string.match(fence, '^[1-9]%d*$') then
    return redis.error_reply('ERR usage: KEY FENCE_KEY , FENCE VALUE [TTL_MS]')
end

local known = redis.call('GET', fence_key)
if known and (#fence < #known or (#fence == #known and fence < known)) then
    return redis.error_reply('STALEFENCE ' .. fence .. ' is lower than ' .. known)
end
-- The write that can fail (an invalid TTL) comes first, since a script is not rolled back.
local reply
if ttl_ms then
    reply = redis.call('SET', key, value, 'PX', ttl_ms)
else
    reply = redis.call('SET', key, value)
end
redis.call('SET', fence_key, fence)
return reply
