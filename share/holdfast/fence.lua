-- Holdfast's fence guard for Redis: SET that a holder who was replaced cannot do.
--
--     redis-cli --eval fence.lua KEY FENCE_KEY , FENCE VALUE [TTL_MS]
--
-- FENCE_KEY remembers the largest fence that has written; let it never expire, and in a cluster
-- give both keys one hash tag ({report}, {report}:fence).  A fence that is the largest so far, or
-- equal to it, sets KEY: OK.  A lower one: the error STALEFENCE, and nothing is written.
-- Fences are compared as text: a Lua number would round what has more than 15 digits.

local key, fence_key = KEYS[1], KEYS[2]
local fence, value, ttl_ms = ARGV[1], ARGV[2], ARGV[3]

if not key or not fence_key or not value or not string.match(fence, '^[1-9]%d*$') then
    return redis.error_reply('ERR usage: KEY FENCE_KEY , FENCE VALUE [TTL_MS]')
end

local known = redis.call('GET', fence_key)
if known and (#fence < #known or (#fence == #known and fence < known)) then
    return redis.error_reply('STALEFENCE ' .. fence .. ' is lower than ' .. known)
end
-- The write that can be refused (a TTL that is none) comes first: a script is not undone.
local reply
if ttl_ms then
    reply = redis.call('SET', key, value, 'PX', ttl_ms)
else
    reply = redis.call('SET', key, value)
end
redis.call('SET', fence_key, fence)
return reply
