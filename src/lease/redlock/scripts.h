/* The scripts of the Redlock driver, each atomic on one server.
 *
 * A lock on one server is the key LOCK, holdfast:{NAME}:redlock.  If it is held exclusively LOCK is
 * the string "OWNER FENCE SINCE LABEL", which expires with the lease.  If it is shared LOCK is a
 * hash of "FENCE SINCE LABEL" by owner, and each reader also has a key LOCK:OWNER that expires with
 * its lease; LOCK expires a little after the last of them.  Renewing is PEXPIRE in both forms,
 * which works also on a server that is out of memory.  SINCE is the holder's wall clock in
 * milliseconds.  MGET reads LOCK because it answers nil for a hash.
 *
 * KEY_STATE says whether the server counts (join.c); a script that locks or renews compares it with
 * what the client has seen, and does nothing if it differs.  KEY_FENCE is the counter of all locks;
 * it has no expiry.  Its numbers have 16 digits, of which Lua's own conversion keeps 14, so they
 * are printed with %d.  LOCK:wait exists while clients wait; then f is published on the channel
 * LOCK when the lock is released, and t when it is taken. */
#ifndef HF_LEASE_REDLOCK_SCRIPTS_H
#define HF_LEASE_REDLOCK_SCRIPTS_H

enum redlock_script {
    SCRIPT_LOCK,
    SCRIPT_RENEW,
    SCRIPT_RELEASE,
    SCRIPT_FENCE,
    SCRIPT_BREAK,
    SCRIPT_INSPECT,
    SCRIPT_LOOK,
    SCRIPT_JOIN,
    N_SCRIPTS
};

/* The first number of an answer that is a table.  A single value instead is a fence: the lease was
 * taken or renewed for its whole TTL. */
enum redlock_answer {
    ANSWER_DONE = 0,  /* { 0, fence, remaining ms; -1: the whole TTL, 1 if shared } */
    ANSWER_TAKEN = 1, /* { 1, 0, remaining ms } */
    ANSWER_LOST = 2,  /* another owner has it */
    ANSWER_FREE = 3,  /* nobody has it */
    ANSWER_OUT = 4,   /* the server's state is not the one that the client knows */
};

/* KEYS: lock.  ARGV: state, owner, TTL in ms, "SINCE LABEL", flags: s if shared, w if the client is
 * going to wait.  The first command that writes is INCR, so a server that refuses writes has done
 * nothing. */
#define REDLOCK_LOCK                                                                               \
    "local K, call, flags = KEYS[1], redis.call, ARGV[5] or ''\n"                                  \
    "local has = call('MGET', 'holdfast:redlock:state', K, K .. ':wait')\n"                        \
    "if has[1] ~= ARGV[1] then return {4} end\n"                                                   \
    "local v, left, fence = has[2], 0\n"                                                           \
    "if v then\n"                                                                                  \
    "  left = call('PTTL', K)\n"                                                                   \
    "  if v:sub(1, 32) == ARGV[2] then return {0, tonumber(v:match('^%x+ (%d+)')), left, 0} end\n" \
    "else\n"                                                                                       \
    "  if flags:sub(1, 1) ~= 's' then\n"                                                           \
    "    fence = string.format('%d', call('INCR', 'holdfast:redlock:fence'))\n"                    \
    "    if call('SET', K, ARGV[2] .. ' ' .. fence .. ' ' .. ARGV[4], 'NX', 'PX', ARGV[3]) then\n" \
    "      if has[3] then call('PUBLISH', K, 't') end\n"                                           \
    "      return fence\n"                                                                         \
    "    end\n"                                                                                    \
    "  end\n"                                                                                      \
    "  local mine = call('HGET', K, ARGV[2])\n"                                                    \
    "  left = mine and call('PTTL', K .. ':' .. ARGV[2]) or 0\n"                                   \
    "  if left > 0 then return {0, tonumber(mine:match('^%d+')), left, 1} end\n"                   \
    "  if not fence then\n"                                                                        \
    "    fence = string.format('%d', call('INCR', 'holdfast:redlock:fence'))\n"                    \
    "    call('HSET', K, ARGV[2], fence .. ' ' .. ARGV[4])\n"                                      \
    "    call('SET', K .. ':' .. ARGV[2], '', 'PX', ARGV[3])\n"                                    \
    "    if call('PTTL', K) < ARGV[3] + 20 then call('PEXPIRE', K, ARGV[3] + 20) end\n"            \
    "    return fence\n"                                                                           \
    "  end\n"                                                                                      \
    "  for _, owner in ipairs(call('HKEYS', K)) do\n"                                              \
    "    local reader = call('PTTL', K .. ':' .. owner)\n"                                         \
    "    if reader > left then left = reader end\n"                                                \
    "    if reader < 0 then call('HDEL', K, owner) end\n"                                          \
    "  end\n"                                                                                      \
    "  if call('SET', K, ARGV[2] .. ' ' .. fence .. ' ' .. ARGV[4], 'NX', 'PX', ARGV[3]) then\n"   \
    "    return fence\n"                                                                           \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "if flags:sub(-1) == 'w' then redis.pcall('SET', K .. ':wait', '', 'PX', 2000) end\n"          \
    "return {1, 0, left}\n"

/* KEYS: lock.  ARGV: state, owner, TTL in ms. */
#define REDLOCK_RENEW                                                                              \
    "local K, call = KEYS[1], redis.call\n"                                                        \
    "local has = call('MGET', 'holdfast:redlock:state', K)\n"                                      \
    "if has[1] ~= ARGV[1] then return {4} end\n"                                                   \
    "local v = has[2]\n"                                                                           \
    "if v then\n"                                                                                  \
    "  if v:sub(1, 32) ~= ARGV[2] then return {2} end\n"                                           \
    "  call('PEXPIRE', K, ARGV[3])\n"                                                              \
    "  return v:match('^%x+ (%d+)')\n"                                                             \
    "end\n"                                                                                        \
    "local mine = call('HGET', K, ARGV[2])\n"                                                      \
    "if not mine then return {call('EXISTS', K) == 1 and 2 or 3} end\n"                            \
    "if call('PEXPIRE', K .. ':' .. ARGV[2], ARGV[3]) == 0 then return {3} end\n"                  \
    "if call('PTTL', K) < ARGV[3] + 20 then call('PEXPIRE', K, ARGV[3] + 20) end\n"                \
    "return {0, tonumber(mine:match('^%d+')), -1, 1}\n"

/* KEYS: lock.  ARGV: owner, q if waiters are not told.  Answers 1 if the owner had it. */
#define REDLOCK_RELEASE                                                                            \
    "local K, call = KEYS[1], redis.call\n"                                                        \
    "local has = call('MGET', K, K .. ':wait')\n"                                                  \
    "local v = has[1]\n"                                                                           \
    "if v then\n"                                                                                  \
    "  if v:sub(1, 32) ~= ARGV[1] then return 0 end\n"                                             \
    "  call('DEL', K)\n"                                                                           \
    "else\n"                                                                                       \
    "  if call('HDEL', K, ARGV[1]) == 0 then return 0 end\n"                                       \
    "  if call('DEL', K .. ':' .. ARGV[1]) == 0 then return 0 end\n"                               \
    "end\n"                                                                                        \
    "if has[2] and not ARGV[2] then call('PUBLISH', K, 'f') end\n"                                 \
    "return 1\n"

/* KEYS: lock.  ARGV: state, owner, fence.  Writes the fence of a grant to the lease
 * and raises the counter, if the owner still has the lease.  Answers 1 if so. */
#define REDLOCK_FENCE                                                                              \
    "local K, call = KEYS[1], redis.call\n"                                                        \
    "local has = call('MGET', 'holdfast:redlock:state', K, 'holdfast:redlock:fence')\n"            \
    "if has[1] ~= ARGV[1] then return 0 end\n"                                                     \
    "local v = has[2]\n"                                                                           \
    "if v then\n"                                                                                  \
    "  local left = call('PTTL', K)\n"                                                             \
    "  if v:sub(1, 32) ~= ARGV[2] or left < 1 then return 0 end\n"                                 \
    "  call('SET', K, v:sub(1, 33) .. ARGV[3] .. v:match('^%x+ %d+(.*)$'), 'PX', left)\n"          \
    "else\n"                                                                                       \
    "  local mine = call('HGET', K, ARGV[2])\n"                                                    \
    "  if not mine or call('EXISTS', K .. ':' .. ARGV[2]) == 0 then return 0 end\n"                \
    "  call('HSET', K, ARGV[2], ARGV[3] .. mine:match('^%d+(.*)$'))\n"                             \
    "end\n"                                                                                        \
    "if tonumber(has[3] or 0) < tonumber(ARGV[3]) then\n"                                          \
    "  call('SET', 'holdfast:redlock:fence', ARGV[3])\n"                                           \
    "end\n"                                                                                        \
    "return 1\n"

/* KEYS: lock.  Ends the leases of all holders; answers how many there were. */
#define REDLOCK_BREAK                                                                              \
    "local K, call = KEYS[1], redis.call\n"                                                        \
    "local n = call('EXISTS', K)\n"                                                                \
    "if not call('MGET', K)[1] then\n"                                                             \
    "  for _, owner in ipairs(call('HKEYS', K)) do call('DEL', K .. ':' .. owner) end\n"           \
    "end\n"                                                                                        \
    "call('DEL', K)\n"                                                                             \
    "call('PUBLISH', K, 'f')\n"                                                                    \
    "return n\n"

/* KEYS: lock.  Writes nothing.  Answers { 0, or 1 if it is shared, the server's clock in ms, then
 * owner, remaining ms, "FENCE SINCE LABEL" for each holder }. */
#define REDLOCK_INSPECT                                                                            \
    "local K, call = KEYS[1], redis.call\n"                                                        \
    "local t = call('TIME')\n"                                                                     \
    "local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"                                          \
    "local v = call('MGET', K)[1]\n"                                                               \
    "if v then return {0, now, v:sub(1, 32), call('PTTL', K), v:sub(34)} end\n"                    \
    "local all = {1, now}\n"                                                                       \
    "local readers = call('HGETALL', K)\n"                                                         \
    "for i = 1, #readers, 2 do\n"                                                                  \
    "  local left = call('PTTL', K .. ':' .. readers[i])\n"                                        \
    "  if left > 0 then\n"                                                                         \
    "    all[#all + 1] = readers[i]\n"                                                             \
    "    all[#all + 1] = left\n"                                                                   \
    "    all[#all + 1] = readers[i + 1]\n"                                                         \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "return all\n"

/* KEYS: state, fence, vouched.  Writes nothing.  Answers { seconds and microseconds of the server's
 * clock, state, fence, whether the operator vouches for the server }. */
#define REDLOCK_LOOK                                                                               \
    "local call = redis.call\n"                                                                    \
    "local t, has = call('TIME'), call('MGET', KEYS[1], KEYS[2])\n"                                \
    "return {t[1], t[2], has[1] or '', has[2] or '0', call('EXISTS', KEYS[3])}\n"

/* KEYS: state, fence, vouched.  ARGV: the state before, the new one, the least fence, or "" if the
 * server does not join.  Answers 1, or 0 if the state is another one by now.  The counter of a
 * server that joins is at least the server's clock. */
#define REDLOCK_JOIN                                                                               \
    "local call = redis.call\n"                                                                    \
    "if (call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end\n"                               \
    "if ARGV[3] ~= '' then\n"                                                                      \
    "  local t = call('TIME')\n"                                                                   \
    "  local last = tonumber(call('GET', KEYS[2]) or 0) or 0\n"                                    \
    "  last = math.max(last, tonumber(ARGV[3]), t[1] * 1000000 + t[2])\n"                          \
    "  call('SET', KEYS[2], string.format('%.0f', last))\n"                                        \
    "  call('DEL', KEYS[3])\n"                                                                     \
    "end\n"                                                                                        \
    "call('SET', KEYS[1], ARGV[2])\n"                                                              \
    "return 1\n"

#endif
