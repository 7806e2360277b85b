/* The scripts of the Redis driver: one per operation, each atomic on the server.
 *
 * A lock has one of two forms.
 *   single  One holder and no waiter, the usual case:
 *             LOCK          "OWNER FENCE[@SINCE] MODE PRIORITY SLOTS LABEL", expires with the lease
 *           Taking it is SET NX PX and the next fence; giving it back is compare and DEL.
 *   group   Several holders (shared, slots), or at least one waiter:
 *             LOCK          "G FENCE": the latest fence granted
 *             LOCK:held     sorted set: holders by the end of their leases (microseconds)
 *             LOCK:wait     sorted set: waiters by the end of their places, unless they ask again
 *             LOCK:queue    sorted set with equal scores, hence in byte order: the places (see
 *                           `place`) of the waiters that count
 *             LOCK:turn     sorted set: places that were called, by the time of the call; and those
 *                           that were passed over, with score 0.  The latter are not in LOCK:queue.
 *             LOCK:free     sorted set: slots that were given back.  The slots in use and these are
 *                           together 0, 1, 2 ... without a gap.
 *             LOCK:who      hash: holder to "FENCE[@SINCE] MODE PRIORITY SLOTS[/SLOT] LABEL",
 *                           waiter to "TICKET MODE PRIORITY SLOTS LABEL"
 *           All keys expire together, when the last lease or place ends.
 *
 * LOCK exists exactly while the lock is held or waited for, so SET NX cannot overtake a queue.  All
 * that remains of a free lock is its last fence, in holdfast:last, a sorted set of the latest
 * 10,000 locks that were granted.  OWNER is 32 hex digits; MODE is e or s; SLOT is 0 if it is not
 * there.  SINCE, the time of the grant in microseconds, is there only if it is not the fence.
 *
 * Fence: max(last + 1, the server's clock in microseconds), in one key for all locks.  Numbers are
 * printed with %.0f, since Lua's own conversion keeps 14 digits and these have 16.  (A double
 * counts microseconds exactly until the year 2255.)
 *
 * Rules: a shared request is granted if no exclusive one holds the lock or waits before it; an
 * exclusive one if no shared one does and fewer than SLOTS exclusive ones hold it or wait before
 * it.  A request that does not queue is granted if there is no holder.  Only waiters whose turn it
 * is are told, each on its own channel LOCK:wake:OWNER.
 *
 * Memory: at maxmemory Redis refuses commands that may need memory, but only until a script has
 * called a command that writes.  Renewing, releasing and keeping a place must work all the same,
 * so they begin with one that is never refused for that reason, and never changes anything: see
 * REDIS_PRIMARY.
 *
 * KEYS[1] is LOCK, and KEYS[2] of acquire is the fence; the other keys but holdfast:last have
 * LOCK's hash tag.
 *
 * Costs: 2 to 4 commands in the single form; 15 to 25 in the group form, whatever the length of the
 * queue (a shared request looks at the shared ones before it). */
#ifndef HF_LEASE_REDIS_SCRIPTS_H
#define HF_LEASE_REDIS_SCRIPTS_H

/* A script answers { one of these, fence, remaining ms, position, slot }.  With SLOTS the second
 * number is the slots of the other holders and waiters.  With TAKEN the third is -1 if there is no
 * holder, and the last is not a slot but the time in ms after which the waiter should look again
 * because a turn before it runs out; 0: there is no such turn.  A single value instead of a table
 * means DONE: it is the fence, the whole TTL remains, and the slot is 0.  (A table costs as much as
 * a command.) */
#define REDIS_ANSWER_LEN 5
enum redis_answer {
    REDIS_DONE = 0,
    REDIS_TAKEN = 1,
    REDIS_LOST = 2,
    REDIS_SLOTS = 3,
    REDIS_TURN = 4 /* heartbeat: acquire is worth a try */
};

/* clang-format off */

/* Remembers the last fence of the lock K, in one sorted set that is cut to the 10,000 latest grants
 * now and then: at one fence in a hundred, since fences end in digits of the clock.  Errors of a
 * key that somebody overwrote are ignored: a grant does not depend on it. */
#define REDIS_NOTE_FENCE(fence) \
    "redis.pcall('ZADD', 'holdfast:last', " fence ", K)\n" \
    "if (" fence "):sub(-2) == '00' then " \
    "redis.pcall('ZREMRANGEBYRANK', 'holdfast:last', 0, -10001) end\n"

#define REDIS_NOW \
    "local t = redis.call('TIME')\n" \
    "local now = t[1] * 1000000 + t[2]\n"

/* A write that changes nothing.  A replica refuses it, so that what a replica does not know is not
 * taken for an answer; and after it Redis refuses no further command for want of memory. */
#define REDIS_PRIMARY \
    "redis.call('DEL', K .. ':none')\n"

/* What every script needs in the group form, after `now` is known.  SILENT is WAITER_SILENT_MS and
 * CLAIM is WAITER_CLAIM_MS.  A turn that began with the end of a lease is found a little later, by
 * the next script; it counts from that end, but from LATE before now at the most. */
#define REDIS_GROUP \
    "local H, W, Q, M = K .. ':held', K .. ':wait', K .. ':queue', K .. ':who'\n" \
    "local T, F = K .. ':turn', K .. ':free'\n" \
    "local SILENT, CLAIM, LATE = 5000000, 150000, 50000\n" \
    "local turn_at = now\n" \
    "local function int(n) return string.format('%.0f', n) end\n" \
    \
    /* The next number; `now` may have been given out already. */ \
    "local function mint()\n" \
    "  local last = tonumber(redis.call('GETSET', KEYS[2], int(now)))\n" \
    "  if not last or last < now then return now end\n" \
    "  redis.call('SET', KEYS[2], int(last + 1))\n" \
    "  return last + 1\n" \
    "end\n" \
    \
    /* Priority downwards, ticket, mode at byte 27, owner at 28 to 59, slots: a member of Q. */ \
    "local function place(owner, who)\n" \
    "  local ticket, mode, priority, slots = who:match('^(%d+) (%a) (%-?%d+) (%d+)')\n" \
    "  return string.format('%010.0f%016.0f%s%s%s', 2147483647 - priority, ticket, mode,\n" \
    "    owner, slots)\n" \
    "end\n" \
    \
    /* The number of holders, their mode, the end of the first lease, slots. */ \
    "local function holders()\n" \
    "  local first = redis.call('ZRANGE', H, 0, 0, 'WITHSCORES')\n" \
    "  if not first[1] then return 0 end\n" \
    "  local who = redis.call('HGET', M, first[1]) or ''\n" \
    "  local mode, slots = who:match('^%d+@?%d* (%a) %-?%d+ (%d+)')\n" \
    "  return redis.call('ZCARD', H), mode, tonumber(first[2]), tonumber(slots)\n" \
    "end\n" \
    \
    "local function slot_of(who)\n" \
    "  return tonumber(who:match('^%d+@?%d* %a %-?%d+ %d+/(%d+)')) or 0\n" \
    "end\n" \
    /* The lowest free slot, with n holders. */ \
    "local function take_slot(n)\n" \
    "  local slot = redis.call('ZRANGE', F, 0, 0)[1]\n" \
    "  if slot then redis.call('ZREM', F, slot) end\n" \
    "  return tonumber(slot) or n\n" \
    "end\n" \
    \
    /* Ends a lease. */ \
    "local function drop_holder(owner)\n" \
    "  local who = redis.call('HGET', M, owner) or ''\n" \
    "  redis.call('HDEL', M, owner)\n" \
    "  redis.call('ZREM', H, owner)\n" \
    "  local slots = who:match('^%d+@?%d* e %-?%d+ (%d+)')\n" \
    "  if slots and slots ~= '1' then\n" \
    "    local slot = int(slot_of(who))\n" \
    "    redis.call('ZADD', F, slot, slot)\n" \
    "  end\n" \
    "end\n" \
    \
    /* Ends a place. */ \
    "local function drop_waiter(owner)\n" \
    "  local who = redis.call('HGET', M, owner)\n" \
    "  redis.call('HDEL', M, owner)\n" \
    "  redis.call('ZREM', W, owner)\n" \
    "  if not who then return end\n" \
    "  local at = place(owner, who)\n" \
    "  redis.call('ZREM', Q, at)\n" \
    "  redis.call('ZREM', T, at)\n" \
    "end\n" \
    \
    /* Is it free for `mode` behind `rank` places, with `n` holders of mode `held`? */ \
    "local function is_free(mode, slots, rank, n, held)\n" \
    "  if n > 0 and held ~= mode then return false end\n" \
    "  if mode == 'e' and n + rank >= slots then return false end\n" \
    "  for from = 0, rank - 1, 64 do\n" \
    "    for _, p in ipairs(redis.call('ZRANGE', Q, from, math.min(from + 63, rank - 1))) do\n" \
    "      if p:sub(27, 27) ~= mode then return false end\n" \
    "    end\n" \
    "  end\n" \
    "  return true\n" \
    "end\n" \
    \
    /* The waiter at `at` counts again.  Returns whether it did not. */ \
    "local function recall(at)\n" \
    "  if tonumber(redis.call('ZSCORE', T, at) or 1) > 0 then return false end\n" \
    "  redis.call('ZREM', T, at)\n" \
    "  redis.call('ZADD', Q, 0, at)\n" \
    "  return true\n" \
    "end\n" \
    \
    /* Passes over the waiters that let their turn go by, but for `me`, if others wait: those that
     * have no turn yet, and the request that is being served, which counts as `asks`.  Returns
     * whether there were any: then `call_next`. */ \
    "local function pass_over(me, asks)\n" \
    "  local called = redis.call('ZCOUNT', T, '(0', '+inf')\n" \
    "  if called == 0 or redis.call('ZCARD', Q) + asks <= called then return false end\n" \
    "  local some = false\n" \
    "  for _, p in ipairs(redis.call('ZRANGEBYSCORE', T, '(0', int(now - CLAIM))) do\n" \
    "    if p ~= me then\n" \
    "      redis.call('ZREM', Q, p)\n" \
    "      redis.call('ZADD', T, 0, p)\n" \
    "      some = true\n" \
    "    end\n" \
    "  end\n" \
    "  return some\n" \
    "end\n" \
    \
    /* Calls the waiters whose turn has come, and tells them, but for `me`, which is asking.  With
     * `head` the first is told in any case, since it is a new one and has to learn when the lease
     * before it ends.  Those whose turn it is no longer count as not called. */ \
    "local function call_next(head, me)\n" \
    "  local n, held = holders()\n" \
    "  local called, rank, first, more = {}, 0, nil, true\n" \
    "  for _, p in ipairs(redis.call('ZRANGEBYSCORE', T, '(0', '+inf')) do called[p] = true end\n" \
    "  while more do\n" \
    "    local some = redis.call('ZRANGE', Q, rank, rank + 15)\n" \
    "    more = #some == 16\n" \
    "    for _, p in ipairs(some) do\n" \
    "      local mode, owner = p:sub(27, 27), p:sub(28, 59)\n" \
    "      first = first or mode\n" \
    "      local turn = mode == first and (n == 0 or held == mode) and\n" \
    "        (mode == 's' or n + rank < tonumber(p:sub(60)))\n" \
    "      if ((turn and not called[p]) or (head and rank == 0)) and owner ~= me then\n" \
    "        redis.call('PUBLISH', K .. ':wake:' .. owner, '')\n" \
    "      end\n" \
    "      if not turn then more = false break end\n" \
    "      if not called[p] then redis.call('ZADD', T, int(turn_at), p) end\n" \
    "      called[p] = nil\n" \
    "      rank = rank + 1\n" \
    "    end\n" \
    "  end\n" \
    "  for p in pairs(called) do redis.call('ZREM', T, p) end\n" \
    "end\n" \
    \
    /* When the waiter at `rank` should look again because a turn before it runs out: in ms; 0:
     * there is none.  Only the first few waiters look. */ \
    "local function look(rank)\n" \
    "  if rank == 0 or rank > 8 then return 0 end\n" \
    "  local first = redis.call('ZRANGEBYSCORE', T, '(0', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)\n" \
    "  if not first[2] then return 0 end\n" \
    "  return math.max(math.ceil((first[2] + CLAIM - now) / 1000), 1)\n" \
    "end\n" \
    \
    /* Drops leases and places that have ended.  Returns whether there were any: then `call_next`. */ \
    "local function tidy()\n" \
    "  local some = false\n" \
    "  local ended = redis.call('ZRANGEBYSCORE', H, '-inf', int(now), 'WITHSCORES')\n" \
    "  for i = 1, #ended, 2 do\n" \
    "    drop_holder(ended[i])\n" \
    "    turn_at = math.max(tonumber(ended[i + 1]), now - LATE)\n" \
    "    some = true\n" \
    "  end\n" \
    "  for _, owner in ipairs(redis.call('ZRANGEBYSCORE', W, '-inf', int(now))) do\n" \
    "    drop_waiter(owner)\n" \
    "    some = true\n" \
    "  end\n" \
    "  return some\n" \
    "end\n" \
    \
    /* After a change: all keys expire with the last lease or place, or go at once. */ \
    "local function set_expiry()\n" \
    "  local last = 0\n" \
    "  for _, z in ipairs({H, W}) do\n" \
    "    local e = redis.call('ZRANGE', z, -1, -1, 'WITHSCORES')[2]\n" \
    "    if e and tonumber(e) > last then last = tonumber(e) end\n" \
    "    if not e and z == H then redis.call('DEL', F) end\n" \
    "  end\n" \
    "  if last == 0 then return redis.call('DEL', K, H, W, Q, M, T, F) end\n" \
    "  local at = int(math.ceil(last / 1000))\n" \
    "  for _, k in ipairs({K, H, W, Q, M, T, F}) do redis.call('PEXPIREAT', k, at) end\n" \
    "end\n" \
    \
    "local function left(at) return math.max(math.floor((at - now) / 1000), 0) end\n"

/* ARGV: owner, TTL in ms, "MODE PRIORITY SLOTS LABEL", "1" to keep a place.  If the owner has a
 * lease or a place already, the answer describes that.
 * In the single form numbers stay text, which compares like numbers as long as it has one length:
 * arithmetic would cost as much as a command.
 * If the fence cannot be written (an ACL forbids it) the lease is given back before the error is
 * returned: an error means that nothing was done. */
#define REDIS_ACQUIRE \
    "local K, call = KEYS[1], redis.call\n" \
    "local t = call('TIME')\n" \
    "local fence = t[1] .. ('000000'):sub(#t[2] + 1) .. t[2]\n" \
    "if call('SET', K, ARGV[1] .. ' ' .. fence .. ' ' .. ARGV[3], 'NX', 'PX', ARGV[2]) then\n" \
    "  local last = redis.pcall('GETSET', KEYS[2], fence)\n" \
    "  if not last or (#last == #fence and last < fence) then\n" \
         REDIS_NOTE_FENCE("fence") \
    "    return fence\n" \
    "  end\n" \
    "  if type(last) == 'table' then call('DEL', K) return last end\n" \
    "  local since = fence\n" \
    "  fence = string.format('%.0f', math.max((tonumber(last) or 0) + 1, fence))\n" \
    "  call('SET', KEYS[2], fence)\n" \
    "  call('SET', K, ARGV[1] .. ' ' .. fence .. '@' .. since .. ' ' .. ARGV[3], 'PX', ARGV[2])\n" \
       REDIS_NOTE_FENCE("fence") \
    "  return fence\n" \
    "end\n" \
    "local now = tonumber(fence)\n" \
    REDIS_GROUP \
    "local owner = ARGV[1]\n" \
    "local mode, priority, slots, label = ARGV[3]:match('^(%a) (%-?%d+) (%d+)(.*)$')\n" \
    "slots = tonumber(slots)\n" \
    "local queue = ARGV[4] == '1'\n" \
    "local v = redis.call('GET', K)\n" \
    "if v:sub(1, 1) ~= 'G' then\n" \
    "  local other, f, m, s = v:match('^(%x+) (%d+)@?%d* (%a) %-?%d+ (%d+)')\n" \
    "  local ms = redis.call('PTTL', K)\n" \
    "  if other == owner then return {0, tonumber(f), ms, 0, 0} end\n" \
    "  if tonumber(s) ~= slots then return {3, tonumber(s), 0, 0, 0} end\n" \
    "  if not queue and (m ~= mode or (mode == 'e' and slots == 1)) then\n" \
    "    return {1, 0, ms, 0, 0}\n" \
    "  end\n" \
    "  redis.call('ZADD', H, int(now + ms * 1000), other)\n" \
    "  redis.call('HSET', M, other, v:sub(34))\n" \
    "  redis.call('SET', K, 'G ' .. f)\n" \
    "end\n" \
    "local changed = tidy()\n" \
    "local ends, mine = redis.call('ZSCORE', H, owner), redis.call('HGET', M, owner)\n" \
    "if ends then\n" \
    "  if changed then call_next(true, owner) set_expiry() end\n" \
    "  return {0, tonumber(mine:match('^%d+')), left(ends), 0, slot_of(mine)}\n" \
    "end\n" \
    "local n, held, first, said = holders()\n" \
    "if n == 0 then\n" \
    "  local p = redis.call('ZRANGE', Q, 0, 0)[1] or redis.call('ZRANGE', T, 0, 0)[1] or ''\n" \
    "  said = tonumber(p:sub(60))\n" \
    "end\n" \
    "if said and said ~= slots then\n" \
    "  if changed then call_next(true, owner) end\n" \
    "  set_expiry()\n" \
    "  return {3, said, 0, 0, 0}\n" \
    "end\n" \
    "local at = mine and place(owner, mine)\n" \
    "if at and recall(at) then changed = true end\n" \
    "if pass_over(at, at and 0 or 1) then changed = true end\n" \
    "local rank = at and redis.call('ZRANK', Q, at) or\n" \
    "  redis.call('ZLEXCOUNT', Q, '-', string.format('(%010.0f:', 2147483647 - priority))\n" \
    "if at then mode = at:sub(27, 27) end\n" \
    "if (n == 0 and not queue) or is_free(mode, slots, rank, n, held) then\n" \
    "  local f, slot = mint(), 0\n" \
    "  if at then drop_waiter(owner) end\n" \
    "  if mode == 'e' and slots > 1 then slot = take_slot(n) end\n" \
    "  redis.call('ZADD', H, int(now + ARGV[2] * 1000), owner)\n" \
    "  redis.call('HSET', M, owner, int(f) .. (f > now and '@' .. int(now) or '') .. ' ' .. mode\n" \
    "    .. ' ' .. priority .. ' ' .. slots .. (slot > 0 and '/' .. slot or '') .. label)\n" \
    "  redis.call('SET', K, 'G ' .. int(f))\n" \
       REDIS_NOTE_FENCE("int(f)") \
    "  if changed or redis.call('ZCARD', T) > 0 then call_next(changed, owner) end\n" \
    "  set_expiry()\n" \
    "  return {0, f, tonumber(ARGV[2]), 0, slot}\n" \
    "end\n" \
    "if not mine and queue then\n" \
    "  mine = int(mint()) .. ' ' .. ARGV[3]\n" \
    "  at = place(owner, mine)\n" \
    "  redis.call('ZADD', Q, 0, at)\n" \
    "  redis.call('HSET', M, owner, mine)\n" \
    "end\n" \
    "if mine then redis.call('ZADD', W, int(now + SILENT), owner) end\n" \
    "if changed then call_next(true, owner) end\n" \
    "if mine or changed then set_expiry() end\n" \
    "local ms = n > 0 and left(first) or -1\n" \
    "if not mine then return {1, 0, ms, 0, 0} end\n" \
    "return {1, 0, ms, rank + 1, look(rank)}\n"

/* ARGV: owner, TTL in ms.  Compares before it extends: a lease that has ended stays ended. */
#define REDIS_RENEW \
    "local K = KEYS[1]\n" \
    "local v = redis.call('GET', K)\n" \
    "if v and v:sub(1, 32) == ARGV[1] then\n" \
    "  redis.call('PEXPIRE', K, ARGV[2])\n" \
    "  return {0, tonumber(v:match('^%x+ (%d+)')), tonumber(ARGV[2]), 0, 0}\n" \
    "end\n" \
    REDIS_PRIMARY \
    "if not v or v:sub(1, 1) ~= 'G' then return {2, 0, 0, 0, 0} end\n" \
    REDIS_NOW REDIS_GROUP \
    "local changed = tidy()\n" \
    "local mine = redis.call('ZSCORE', H, ARGV[1]) and redis.call('HGET', M, ARGV[1])\n" \
    "if mine then redis.call('ZADD', H, int(now + ARGV[2] * 1000), ARGV[1]) end\n" \
    "if changed then call_next(true) end\n" \
    "if mine or changed then set_expiry() end\n" \
    "if not mine then return {2, 0, 0, 0, 0} end\n" \
    "return {0, tonumber(mine:match('^%d+')), tonumber(ARGV[2]), 0, slot_of(mine)}\n"

/* ARGV: owner.  Compares before it deletes the lease or the place in the queue. */
#define REDIS_RELEASE \
    "local K = KEYS[1]\n" \
    "local v = redis.call('GET', K)\n" \
    "if v and v:sub(1, 32) == ARGV[1] then\n" \
    "  return redis.call('DEL', K)\n" \
    "end\n" \
    REDIS_PRIMARY \
    "if not v or v:sub(1, 1) ~= 'G' then return {2, 0, 0, 0, 0} end\n" \
    REDIS_NOW REDIS_GROUP \
    "local changed, head = tidy(), false\n" \
    "local mine = redis.call('HGET', M, ARGV[1])\n" \
    "if mine and redis.call('ZSCORE', H, ARGV[1]) then\n" \
    "  drop_holder(ARGV[1])\n" \
    "elseif mine then\n" \
    "  head = redis.call('ZRANK', Q, place(ARGV[1], mine)) == 0\n" \
    "  drop_waiter(ARGV[1])\n" \
    "end\n" \
    "if mine or changed then\n" \
    "  turn_at = now\n" \
    "  call_next(head or changed)\n" \
    "  set_expiry()\n" \
    "end\n" \
    "return {mine and 0 or 2, 0, 0, 0, 0}\n"

/* ARGV: owner.  A waiter's heartbeat: keeps its place, and tells whether acquire is worth a try. */
#define REDIS_HEARTBEAT \
    "local K = KEYS[1]\n" \
    "local v = redis.call('GET', K)\n" \
    REDIS_PRIMARY \
    "if not v or v:sub(1, 1) ~= 'G' then return {4, 0, 0, 0, 0} end\n" \
    REDIS_NOW REDIS_GROUP \
    "local changed = tidy()\n" \
    "local mine = redis.call('ZSCORE', W, ARGV[1]) and redis.call('HGET', M, ARGV[1])\n" \
    "local at = mine and place(ARGV[1], mine)\n" \
    "if at then\n" \
    "  redis.call('ZADD', W, int(now + SILENT), ARGV[1])\n" \
    "  if recall(at) then changed = true end\n" \
    "  if pass_over(at, 0) then changed = true end\n" \
    "end\n" \
    "if changed then call_next(true, ARGV[1]) end\n" \
    "if mine or changed then set_expiry() end\n" \
    "if not mine then return {4, 0, 0, 0, 0} end\n" \
    "local rank = redis.call('ZRANK', Q, at)\n" \
    "local n, held, first = holders()\n" \
    "if is_free(at:sub(27, 27), tonumber(at:sub(60)), rank, n, held) then\n" \
    "  return {4, 0, 0, 0, 0}\n" \
    "end\n" \
    "return {1, 0, n > 0 and left(first) or -1, rank + 1, look(rank)}\n"

/* Ends the holders' leases; waiters keep their places. */
#define REDIS_BREAK \
    "local K = KEYS[1]\n" \
    "local v = redis.call('GET', K)\n" \
    REDIS_PRIMARY \
    "if not v then return {0, 0, 0, 0, 0} end\n" \
    "if v:sub(1, 1) ~= 'G' then redis.call('DEL', K) return {0, 0, 0, 0, 0} end\n" \
    REDIS_NOW REDIS_GROUP \
    "tidy()\n" \
    "for _, owner in ipairs(redis.call('ZRANGE', H, 0, -1)) do\n" \
    "  redis.call('HDEL', M, owner)\n" \
    "end\n" \
    "redis.call('DEL', H, F)\n" \
    "turn_at = now\n" \
    "call_next()\n" \
    "set_expiry()\n" \
    "return {0, 0, 0, 0, 0}\n"

/* Writes nothing.  Answers { last fence, number of holders, now, then owner, remaining ms, who for
 * each holder, then for each waiter in the order of service }. */
#define REDIS_INSPECT_HEAD_LEN 3
#define REDIS_INSPECT \
    "local K = KEYS[1]\n" \
    "local v = redis.call('GET', K)\n" \
    "if not v then\n" \
    "  local last = redis.pcall('ZSCORE', 'holdfast:last', K)\n" \
    "  return {type(last) == 'string' and tonumber(last) or 0, 0, 0}\n" \
    "end\n" \
    REDIS_NOW \
    "if v:sub(1, 1) ~= 'G' then\n" \
    "  local f = tonumber(v:match('^%x+ (%d+)'))\n" \
    "  return {f, 1, now, v:sub(1, 32), redis.call('PTTL', K), v:sub(34)}\n" \
    "end\n" \
    REDIS_GROUP \
    "local all = {tonumber(v:sub(3)), 0, now}\n" \
    "local held = redis.call('ZRANGEBYSCORE', H, '(' .. int(now), '+inf', 'WITHSCORES')\n" \
    "for i = 1, #held, 2 do\n" \
    "  all[2] = all[2] + 1\n" \
    "  all[#all + 1] = held[i]\n" \
    "  all[#all + 1] = left(held[i + 1])\n" \
    "  all[#all + 1] = redis.call('HGET', M, held[i]) or ''\n" \
    "end\n" \
    "local places = redis.call('ZRANGE', Q, 0, -1)\n" \
    "for _, p in ipairs(redis.call('ZRANGEBYSCORE', T, 0, 0)) do places[#places + 1] = p end\n" \
    "table.sort(places)\n" \
    "for _, p in ipairs(places) do\n" \
    "  local owner = p:sub(28, 59)\n" \
    "  local ends = tonumber(redis.call('ZSCORE', W, owner) or 0)\n" \
    "  if ends > now then\n" \
    "    all[#all + 1] = owner\n" \
    "    all[#all + 1] = left(ends)\n" \
    "    all[#all + 1] = redis.call('HGET', M, owner) or ''\n" \
    "  end\n" \
    "end\n" \
    "return all\n"

/* clang-format on */

#endif
