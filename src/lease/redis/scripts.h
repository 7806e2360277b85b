/* The scripts of the Redis driver: one per operation, each atomic on the server.
 *
 * A lock has one of two forms.
 *   single  One holder and no waiter, the usual case:
 *             LOCK          "OWNER FENCE MODE PRIORITY SLOTS LABEL", expires with the lease
 *           Taking it is SET NX PX and the next fence; giving it back is compare and DEL.
 *   group   Several holders (shared, slots), or at least one waiter:
 *             LOCK          "G FENCE": the latest fence granted
 *             LOCK:held     sorted set: holders by the end of their leases (microseconds)
 *             LOCK:wait     sorted set: waiters by the end of their places, unless they ask again
 *             LOCK:queue    sorted set with equal scores, hence in byte order: places, see `place`
 *             LOCK:who      hash: holder or waiter to "FENCE MODE PRIORITY SLOTS LABEL"; for a
 *                           waiter the number is its ticket
 *           All five keys expire together, when the last lease or place ends.
 * LOCK exists exactly while the lock is held or waited for, so SET NX cannot overtake a queue.  All
 * that remains of a free lock is its last fence, in holdfast:last, a sorted set of the latest
 * 10,000 locks that were granted.  OWNER is 32 hex digits; MODE is e or s.
 *
 * Fence: max(last + 1, the server's clock in microseconds), in one key for all locks.  Numbers are
 * printed with %.0f, since Lua's own conversion keeps 14 digits and these have 16.  (A double
 * counts microseconds exactly until the year 2255.)
 *
 * Rules: a shared request is granted if no exclusive one holds the lock or waits before it; an
 * exclusive one if no shared one does and fewer than SLOTS exclusive ones hold it or wait before
 * it.  Only waiters whose turn it is are told, each on its own channel LOCK:wake:OWNER.
 *
 * KEYS[1] is LOCK, and KEYS[2] of acquire is the fence; the other keys have LOCK's hash tag. Costs:
 * 2 to 4 commands in the single form; about 15 in the group form, whatever the length of the queue
 * (a shared request looks at the shared ones before it). */
#ifndef HF_LEASE_REDIS_SCRIPTS_H
#define HF_LEASE_REDIS_SCRIPTS_H

/* A script answers { one of these, fence, remaining ms, position }.  With SLOTS the second number
 * is the slots of the other holders and waiters; with TAKEN the third is -1 if there is no holder.
 * A single value instead of a table means DONE: it is the fence, and the whole TTL remains.  (A
 * table costs as much as a command.) */
enum redis_answer {
    REDIS_DONE = 0,
    REDIS_TAKEN = 1,
    REDIS_LOST = 2,
    REDIS_SLOTS = 3,
    REDIS_TURN = 4 /* heartbeat: acquire is worth a try */
};

/* Remembers the last fence of the lock K, in one sorted set that is cut to the 10,000 latest grants
 * now and then: at one fence in a hundred, since fences end in digits of the clock.  Errors of a
 * key that somebody overwrote are ignored: a grant does not depend on it. */
#define REDIS_NOTE_FENCE(fence)                                                                    \
    "redis.pcall('ZADD', 'holdfast:last', " fence ", K)\n"                                         \
    "if (" fence "):sub(-2) == '00' then "                                                         \
    "redis.pcall('ZREMRANGEBYRANK', 'holdfast:last', 0, -10001) end\n"

/* What every script needs in the group form, after `now` is known.  SILENT is WAITER_SILENT_MS. */
#define REDIS_GROUP                                                                                                                                          \
    "local H, W, Q, M = K .. ':held', K .. ':wait', K .. ':queue', K .. ':who'\n"                                                                            \
    "local SILENT = 5000000\n"                                                                                                                               \
    "local function int(n) return string.format('%.0f', n) end\n"                                                                                            \
                                                                                                                                                             \
    /* The next number; `now` may have been given out already. */                                                                                            \
    "local function mint()\n"                                                                                                                                \
    "  local last = tonumber(redis.call('GETSET', KEYS[2], int(now)))\n"                                                                                     \
    "  if not last or last < now then return now end\n"                                                                                                      \
    "  redis.call('SET', KEYS[2], int(last + 1))\n"                                                                                                          \
    "  return last + 1\n"                                                                                                                                    \
    "end\n"                                                                                                                                                  \
                                                                                                                                                             \
    /* Priority downwards, ticket, mode at byte 27, owner at 28 to 59, slots: a member of Q. */                                                              \
    "local function place(owner, who)\n"                                                                                                                     \
    "  local ticket, mode, priority, slots = who:match('^(%d+) (%a) (%-?%d+) (%d+)')\n"                                                                      \
    "  return string.format('%010.0f%016.0f%s%s%s', 2147483647 - priority, ticket, mode,\n"                                                                  \
    "    owner, slots)\n"                                                                                                                                    \
    "end\n"                                                                                                                                                  \
                                                                                                                                                             \
    /* The number of holders, their mode, the end of the first lease, slots. */                                                                              \
    "local function holders()\n"                                                                                                                             \
    "  local first = redis.call('ZRANGE', H, 0, 0, 'WITHSCORES')\n"                                                                                          \
    "  if not first[1] then return 0 end\n"                                                                                                                  \
    "  local who = redis.call('HGET', M, first[1]) or ''\n"                                                                                                  \
    "  local mode, slots = who:match('^%d+ (%a) %-?%d+ (%d+)')\n"                                                                                            \
    "  return redis.call('ZCARD', H), mode, tonumber(first[2]), tonumber(slots)\n"                                                                           \
    "end\n"                                                                                                                                                  \
                                                                                                                                                             \
    /* Is it free for `mode` behind `rank` places, with `n` holders of mode `held`? */                                                                       \
    "local function is_free(mode, slots, rank, n, held)\n"                                                                                                   \
    "  if n > 0 and held ~= mode then return false end\n"                                                                                                    \
    "  if mode == 'e' and n + rank >= slots then return false end\n"                                                                                         \
    "  for from = 0, rank - 1, 64 do\n"                                                                                                                      \
    "    for _, p in ipairs(redis.call('ZRANGE', Q, from, math.min(from + 63, rank - 1))) do\n"                                                              \
    "      if p:sub(27, 27) ~= mode then return false end\n"                                                                                                 \
    "    end\n"                                                                                                                                              \
    "  end\n"                                                                                                                                                \
    "  return true\n"                                                                                                                                        \
    "end\n"                                                                                                                                                  \
                                                                                                                                                             \
    /* Tells the waiters whose turn it is; with `head` the first in any case, since it is a new */ /* one and has to learn when the lease before it ends. */ \
    "local function wake(head)\n"                                                                                                                            \
    "  local n, held = holders()\n"                                                                                                                          \
    "  local rank, first = 0, nil\n"                                                                                                                         \
    "  while true do\n"                                                                                                                                      \
    "    local some = redis.call('ZRANGE', Q, rank, rank + 15)\n"                                                                                            \
    "    for _, p in ipairs(some) do\n"                                                                                                                      \
    "      local mode = p:sub(27, 27)\n"                                                                                                                     \
    "      first = first or mode\n"                                                                                                                          \
    "      local turn = mode == first and (n == 0 or held == mode) and\n"                                                                                    \
    "        (mode == 's' or n + rank < tonumber(p:sub(60)))\n"                                                                                              \
    "      if not turn and not (head and rank == 0) then return end\n"                                                                                       \
    "      redis.call('PUBLISH', K .. ':wake:' .. p:sub(28, 59), '')\n"                                                                                      \
    "      if not turn then return end\n"                                                                                                                    \
    "      rank = rank + 1\n"                                                                                                                                \
    "    end\n"                                                                                                                                              \
    "    if #some < 16 then return end\n"                                                                                                                    \
    "  end\n"                                                                                                                                                \
    "end\n"                                                                                                                                                  \
                                                                                                                                                             \
    /* Drops leases and places that have ended.  Returns whether there were any: then `wake`. */                                                             \
    "local function tidy()\n"                                                                                                                                \
    "  local some = false\n"                                                                                                                                 \
    "  for _, owner in ipairs(redis.call('ZRANGEBYSCORE', H, '-inf', int(now))) do\n"                                                                        \
    "    redis.call('HDEL', M, owner)\n"                                                                                                                     \
    "    redis.call('ZREM', H, owner)\n"                                                                                                                     \
    "    some = true\n"                                                                                                                                      \
    "  end\n"                                                                                                                                                \
    "  for _, owner in ipairs(redis.call('ZRANGEBYSCORE', W, '-inf', int(now))) do\n"                                                                        \
    "    local who = redis.call('HGET', M, owner)\n"                                                                                                         \
    "    if who then redis.call('ZREM', Q, place(owner, who)) end\n"                                                                                         \
    "    redis.call('HDEL', M, owner)\n"                                                                                                                     \
    "    redis.call('ZREM', W, owner)\n"                                                                                                                     \
    "    some = true\n"                                                                                                                                      \
    "  end\n"                                                                                                                                                \
    "  return some\n"                                                                                                                                        \
    "end\n"                                                                                                                                                  \
                                                                                                                                                             \
    /* After a change: all keys expire with the last lease or place, or go at once. */                                                                       \
    "local function set_expiry()\n"                                                                                                                          \
    "  local last = 0\n"                                                                                                                                     \
    "  for _, z in ipairs({H, W}) do\n"                                                                                                                      \
    "    local e = redis.call('ZRANGE', z, -1, -1, 'WITHSCORES')[2]\n"                                                                                       \
    "    if e and tonumber(e) > last then last = tonumber(e) end\n"                                                                                          \
    "  end\n"                                                                                                                                                \
    "  if last == 0 then return redis.call('DEL', K, H, W, Q, M) end\n"                                                                                      \
    "  local at = int(math.ceil(last / 1000))\n"                                                                                                             \
    "  for _, k in ipairs({K, H, W, Q, M}) do redis.call('PEXPIREAT', k, at) end\n"                                                                          \
    "end\n"                                                                                                                                                  \
                                                                                                                                                             \
    "local function left(at) return math.max(math.floor((at - now) / 1000), 0) end\n"

#define REDIS_NOW                                                                                  \
    "local t = redis.call('TIME')\n"                                                               \
    "local now = t[1] * 1000000 + t[2]\n"

/* ARGV: owner, TTL in ms, "MODE PRIORITY SLOTS LABEL", "1" to keep a place.  If the owner has a
 * lease or a place already, the answer describes that.
 * In the single form numbers stay text, which compares like numbers as long as it has one length:
 * arithmetic would cost as much as a command.
 * If the fence cannot be written (an ACL forbids it) the lease is given back before the error is
 * returned: an error means that nothing was done. */
#define REDIS_ACQUIRE                                                                              \
    "local K, call = KEYS[1], redis.call\n"                                                        \
    "local t = call('TIME')\n"                                                                     \
    "local fence = t[1] .. ('000000'):sub(#t[2] + 1) .. t[2]\n"                                    \
    "if call('SET', K, ARGV[1] .. ' ' .. fence .. ' ' .. ARGV[3], 'NX', 'PX', ARGV[2]) then\n"     \
    "  local last = redis.pcall('GETSET', KEYS[2], fence)\n"                                       \
    "  if not last or (#last == #fence and last < fence) then\n" REDIS_NOTE_FENCE(                 \
        "fence") "    return fence\n"                                                              \
                 "  end\n"                                                                         \
                 "  if type(last) == 'table' then call('DEL', K) return last end\n"                \
                 "  fence = string.format('%.0f', math.max((tonumber(last) or 0) + 1, fence))\n"   \
                 "  call('SET', KEYS[2], fence)\n"                                                 \
                 "  call('SET', K, ARGV[1] .. ' ' .. fence .. ' ' .. ARGV[3], 'PX', "              \
                 "ARGV[2])\n" REDIS_NOTE_FENCE(                                                    \
                     "fence") "  return fence\n"                                                   \
                              "end\n"                                                              \
                              "local now = tonumber(fence)\n" REDIS_GROUP                          \
                              "local owner = ARGV[1]\n"                                            \
                              "local mode, priority, slots = ARGV[3]:match('^(%a) (%-?%d+) "       \
                              "(%d+)')\n"                                                          \
                              "slots = tonumber(slots)\n"                                          \
                              "local queue = ARGV[4] == '1'\n"                                     \
                              "local v = redis.call('GET', K)\n"                                   \
                              "if v:sub(1, 1) ~= 'G' then\n"                                       \
                              "  local other, f, m, s = v:match('^(%x+) (%d+) (%a) %-?%d+ "        \
                              "(%d+)')\n"                                                          \
                              "  local ms = redis.call('PTTL', K)\n"                               \
                              "  if other == owner then return {0, tonumber(f), ms, 0} end\n"      \
                              "  if tonumber(s) ~= slots then return {3, tonumber(s), 0, 0} end\n" \
                              "  if not queue and (m ~= mode or (mode == 'e' and slots == 1)) "    \
                              "then\n"                                                             \
                              "    return {1, 0, ms, 0}\n"                                         \
                              "  end\n"                                                            \
                              "  redis.call('ZADD', H, int(now + ms * 1000), other)\n"             \
                              "  redis.call('HSET', M, other, v:sub(34))\n"                        \
                              "  redis.call('SET', K, 'G ' .. f)\n"                                \
                              "end\n"                                                              \
                              "local changed = tidy()\n"                                           \
                              "local ends, mine = redis.call('ZSCORE', H, owner), "                \
                              "redis.call('HGET', M, owner)\n"                                     \
                              "if ends then\n"                                                     \
                              "  if changed then set_expiry() wake(true) end\n"                    \
                              "  return {0, tonumber(mine:match('^%d+')), left(ends), 0}\n"        \
                              "end\n"                                                              \
                              "local n, held, first, said = holders()\n"                           \
                              "if n == 0 then said = tonumber((redis.call('ZRANGE', Q, 0, 0)[1] "  \
                              "or ''):sub(60)) end\n"                                              \
                              "if said and said ~= slots then\n"                                   \
                              "  set_expiry()\n"                                                   \
                              "  if changed then wake(true) end\n"                                 \
                              "  return {3, said, 0, 0}\n"                                         \
                              "end\n"                                                              \
                              "local at = mine and place(owner, mine)\n"                           \
                              "local rank = at and redis.call('ZRANK', Q, at) or\n"                \
                              "  redis.call('ZLEXCOUNT', Q, '-', string.format('(%010.0f:', "      \
                              "2147483647 - priority))\n"                                          \
                              "if mine then mode = at:sub(27, 27) end\n"                           \
                              "if is_free(mode, slots, rank, n, held) then\n"                      \
                              "  local f = mint()\n"                                               \
                              "  if at then\n"                                                     \
                              "    redis.call('ZREM', Q, at)\n"                                    \
                              "    redis.call('ZREM', W, owner)\n"                                 \
                              "  end\n"                                                            \
                              "  redis.call('ZADD', H, int(now + ARGV[2] * 1000), owner)\n"        \
                              "  redis.call('HSET', M, owner, int(f) .. ' ' .. mode .. "           \
                              "ARGV[3]:sub(2))\n"                                                  \
                              "  redis.call('SET', K, 'G ' .. int(f))\n" REDIS_NOTE_FENCE(         \
                                  "int(f)") "  set_expiry()\n"                                     \
                                            "  if changed then wake(true) end\n"                   \
                                            "  return {0, f, tonumber(ARGV[2]), 0}\n"              \
                                            "end\n"                                                \
                                            "if not mine and queue then\n"                         \
                                            "  mine = int(mint()) .. ' ' .. ARGV[3]\n"             \
                                            "  at = place(owner, mine)\n"                          \
                                            "  redis.call('ZADD', Q, 0, at)\n"                     \
                                            "  redis.call('HSET', M, owner, mine)\n"               \
                                            "end\n"                                                \
                                            "if mine then redis.call('ZADD', W, int(now + "        \
                                            "SILENT), owner) end\n"                                \
                                            "if mine or changed then set_expiry() end\n"           \
                                            "if changed then wake(true) end\n"                     \
                                            "return {1, 0, n > 0 and left(first) or -1, mine and " \
                                            "rank + 1 or 0}\n"

/* ARGV: owner, TTL in ms.  Compares before it extends: a lease that has ended stays ended. */
#define REDIS_RENEW                                                                                \
    "local K = KEYS[1]\n"                                                                          \
    "local v = redis.call('GET', K)\n"                                                             \
    "if not v then return {2, 0, 0, 0} end\n"                                                      \
    "if v:sub(1, 32) == ARGV[1] then\n"                                                            \
    "  redis.call('PEXPIRE', K, ARGV[2])\n"                                                        \
    "  return {0, tonumber(v:match('^%x+ (%d+)')), tonumber(ARGV[2]), 0}\n"                        \
    "end\n"                                                                                        \
    "if v:sub(1, 1) ~= 'G' then return {2, 0, 0, 0} end\n" REDIS_NOW REDIS_GROUP                   \
    "local changed = tidy()\n"                                                                     \
    "local mine = redis.call('ZSCORE', H, ARGV[1]) and redis.call('HGET', M, ARGV[1])\n"           \
    "if mine then redis.call('ZADD', H, int(now + ARGV[2] * 1000), ARGV[1]) end\n"                 \
    "if mine or changed then set_expiry() end\n"                                                   \
    "if changed then wake(true) end\n"                                                             \
    "if not mine then return {2, 0, 0, 0} end\n"                                                   \
    "return {0, tonumber(mine:match('^%d+')), tonumber(ARGV[2]), 0}\n"

/* ARGV: owner.  Compares before it deletes the lease or the place in the queue. */
#define REDIS_RELEASE                                                                              \
    "local K = KEYS[1]\n"                                                                          \
    "local v = redis.call('GET', K)\n"                                                             \
    "if not v then return {2, 0, 0, 0} end\n"                                                      \
    "if v:sub(1, 32) == ARGV[1] then\n"                                                            \
    "  return redis.call('DEL', K)\n"                                                              \
    "end\n"                                                                                        \
    "if v:sub(1, 1) ~= 'G' then return {2, 0, 0, 0} end\n" REDIS_NOW REDIS_GROUP                   \
    "local changed, head = tidy(), false\n"                                                        \
    "local mine = redis.call('HGET', M, ARGV[1])\n"                                                \
    "if mine then\n"                                                                               \
    "  if redis.call('ZREM', H, ARGV[1]) == 0 then\n"                                              \
    "    local at = place(ARGV[1], mine)\n"                                                        \
    "    head = redis.call('ZRANK', Q, at) == 0\n"                                                 \
    "    redis.call('ZREM', Q, at)\n"                                                              \
    "    redis.call('ZREM', W, ARGV[1])\n"                                                         \
    "  end\n"                                                                                      \
    "  redis.call('HDEL', M, ARGV[1])\n"                                                           \
    "end\n"                                                                                        \
    "if mine or changed then\n"                                                                    \
    "  set_expiry()\n"                                                                             \
    "  wake(head or changed)\n"                                                                    \
    "end\n"                                                                                        \
    "return {mine and 0 or 2, 0, 0, 0}\n"

/* ARGV: owner.  A waiter's heartbeat: keeps its place and tells whether acquire is worth a try. */
#define REDIS_HEARTBEAT                                                                            \
    "local K = KEYS[1]\n"                                                                          \
    "local v = redis.call('GET', K)\n"                                                             \
    "if not v or v:sub(1, 1) ~= 'G' then return {4, 0, 0, 0} end\n" REDIS_NOW REDIS_GROUP          \
    "local changed = tidy()\n"                                                                     \
    "local mine = redis.call('ZSCORE', W, ARGV[1]) and redis.call('HGET', M, ARGV[1])\n"           \
    "if mine then redis.call('ZADD', W, int(now + SILENT), ARGV[1]) end\n"                         \
    "if mine or changed then set_expiry() end\n"                                                   \
    "if changed then wake(true) end\n"                                                             \
    "if not mine then return {4, 0, 0, 0} end\n"                                                   \
    "local at = place(ARGV[1], mine)\n"                                                            \
    "local rank = redis.call('ZRANK', Q, at)\n"                                                    \
    "local n, held, first = holders()\n"                                                           \
    "if is_free(at:sub(27, 27), tonumber(at:sub(60)), rank, n, held) then return {4, 0, 0, 0} "    \
    "end\n"                                                                                        \
    "return {1, 0, n > 0 and left(first) or -1, rank + 1}\n"

/* Ends the holders' leases; waiters keep their places. */
#define REDIS_BREAK                                                                                \
    "local K = KEYS[1]\n"                                                                          \
    "local v = redis.call('GET', K)\n"                                                             \
    "if not v then return {0, 0, 0, 0} end\n"                                                      \
    "if v:sub(1, 1) ~= 'G' then redis.call('DEL', K) return {0, 0, 0, 0} end\n" REDIS_NOW          \
        REDIS_GROUP "tidy()\n"                                                                     \
    "for _, owner in ipairs(redis.call('ZRANGE', H, 0, -1)) do\n"                                  \
    "  redis.call('HDEL', M, owner)\n"                                                             \
    "end\n"                                                                                        \
    "redis.call('DEL', H)\n"                                                                       \
    "set_expiry()\n"                                                                               \
    "wake()\n"                                                                                     \
    "return {0, 0, 0, 0}\n"

/* Writes nothing.  Answers { last fence, number of holders, then owner, remaining ms, who for each
 * holder, then for each waiter in the order of service }. */
#define REDIS_INSPECT                                                                              \
    "local K = KEYS[1]\n"                                                                          \
    "local v = redis.call('GET', K)\n"                                                             \
    "if not v then\n"                                                                              \
    "  local last = redis.pcall('ZSCORE', 'holdfast:last', K)\n"                                   \
    "  return {type(last) == 'string' and tonumber(last) or 0, 0}\n"                               \
    "end\n"                                                                                        \
    "if v:sub(1, 1) ~= 'G' then\n"                                                                 \
    "  local f = tonumber(v:match('^%x+ (%d+)'))\n"                                                \
    "  return {f, 1, v:sub(1, 32), redis.call('PTTL', K), v:sub(34)}\n"                            \
    "end\n" REDIS_NOW REDIS_GROUP "local all = {tonumber(v:sub(3)), 0}\n"                          \
    "local held = redis.call('ZRANGEBYSCORE', H, '(' .. int(now), '+inf', 'WITHSCORES')\n"         \
    "for i = 1, #held, 2 do\n"                                                                     \
    "  all[2] = all[2] + 1\n"                                                                      \
    "  all[#all + 1] = held[i]\n"                                                                  \
    "  all[#all + 1] = left(held[i + 1])\n"                                                        \
    "  all[#all + 1] = redis.call('HGET', M, held[i]) or ''\n"                                     \
    "end\n"                                                                                        \
    "for _, p in ipairs(redis.call('ZRANGE', Q, 0, -1)) do\n"                                      \
    "  local owner = p:sub(28, 59)\n"                                                              \
    "  local ends = tonumber(redis.call('ZSCORE', W, owner) or 0)\n"                               \
    "  if ends > now then\n"                                                                       \
    "    all[#all + 1] = owner\n"                                                                  \
    "    all[#all + 1] = left(ends)\n"                                                             \
    "    all[#all + 1] = redis.call('HGET', M, owner) or ''\n"                                     \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "return all\n"

#endif
