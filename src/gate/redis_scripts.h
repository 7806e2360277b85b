/* The scripts that Redis runs for the gate (gate.h).  Each is atomic, reads all that it decides by
 * before it writes anything, and touches no key but those it is given.  The keys of one call are of
 * one event, but for those of GATE_READ.
 *
 * MGET answers nil for a key of another type, so such a key counts as absent.  Numbers stay texts:
 * a hold's key has up to 19 digits, and Lua's numbers are exact up to 15.  Of two numbers the
 * longer is larger; of two equally long the one that sorts later. */
#ifndef HF_GATE_REDIS_SCRIPTS_H
#define HF_GATE_REDIS_SCRIPTS_H

#define GATE_IS_HOLD                                                                               \
    "local function is_hold(v) return v and #v <= 19 and v:find('^[1-9]%d*$') end\n"
#define GATE_IS_LARGER "local function is_larger(a, b) return #a > #b or #a == #b and a > b end\n"
/* Returns seq and available as texts, or nothing if the value is no count. */
#define GATE_COUNT                                                                                 \
    "local function count(v)\n"                                                                    \
    "  if not v or #v > 40 then return end\n"                                                      \
    "  local seq, left = v:match('^(%d+) (%-?%d+)$')\n"                                            \
    "  if seq and (#seq == 1 or seq:sub(1, 1) ~= '0') then return seq, left end\n"                 \
    "end\n"

/* A command that was sent while the server stood still is executed late, when its sender has given
 * up waiting, and a TTL would begin only then.  So each script gets the time at which it was sent,
 * by the server's clock, subtracts its delay from every TTL, and answers with that clock in
 * milliseconds.  A clock that is set back makes nothing last longer. */
#define GATE_NOW                                                                                   \
    "local t = redis.call('TIME')\n"                                                               \
    "local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"                                          \
    "local late = math.max(0, now - ARGV[1])\n"

/* KEYS: the seats, then the areas.  ARGV: when it was sent, the claim's value, its TTL, how long
 * the sender waits for the answer, the number of seats, and one quantity per area.  A granted claim
 * is answered with the time; a refused one with { index of the first area with too few places or 0,
 * the places it has, indexes of the seats that are taken ... }.  Costs one MGET, and one SET per
 * seat if it is granted. */
#define GATE_CLAIM                                                                                 \
    GATE_IS_HOLD GATE_NOW                                                                          \
        "if #KEYS == 0 or late > tonumber(ARGV[4]) then return now end\n"                          \
        "local mine, n = ARGV[2], tonumber(ARGV[5])\n"                                             \
        "local had = redis.call('MGET', unpack(KEYS))\n"                                           \
        "local no\n"                                                                               \
        "for i = 1, n do\n"                                                                        \
        "  local v = had[i]\n"                                                                     \
        "  if v and v ~= mine and (is_hold(v) or #v == 34 and v:find('^c:%x+$')) then\n"           \
        "    no = no or {0, '0'}\n"                                                                \
        "    no[#no + 1] = i\n"                                                                    \
        "  end\n"                                                                                  \
        "end\n"                                                                                    \
        "if n < #KEYS then\n" GATE_COUNT "for i = n + 1, #KEYS do\n"                               \
        "  local _, left = count(had[i])\n"                                                        \
        "  if left and tonumber(left) < tonumber(ARGV[5 + i - n]) then\n"                          \
        "    no = no or {0, '0'}\n"                                                                \
        "    no[1], no[2] = i - n, left\n"                                                         \
        "    break\n"                                                                              \
        "  end\n"                                                                                  \
        "end end\n"                                                                                \
        "if no then return no end\n"                                                               \
        "for i = 1, n do redis.call('SET', KEYS[i], mine, 'PX', ARGV[3]) end\n"                    \
        "return now\n"

/* KEYS: seats; the same one may come twice.  ARGV: when it was sent, the claim's value, then for
 * each seat a hold (0: none) and a TTL (0: the hold no longer has it).  Answers the time.  Costs
 * one MGET, and at most one command per seat. */
#define GATE_SETTLE                                                                                \
    GATE_IS_HOLD GATE_IS_LARGER GATE_NOW                                                           \
        "local mine, has = ARGV[2], {}\n"                                                          \
        "local had = redis.call('MGET', unpack(KEYS))\n"                                           \
        "for i, key in ipairs(KEYS) do has[key] = had[i] end\n"                                    \
        "for i, key in ipairs(KEYS) do\n"                                                          \
        "  local v, hold, ttl = has[key], ARGV[2 * i + 1], ARGV[2 * i + 2] - late\n"               \
        "  local held = is_hold(v)\n"                                                              \
        "  if hold ~= '0' and ttl > 0 then\n"                                                      \
        "    if not (held and is_larger(v, hold)) then\n"                                          \
        "      redis.call('SET', key, hold, 'PX', string.format('%.0f', ttl))\n"                   \
        "      has[key] = hold\n"                                                                  \
        "    end\n"                                                                                \
        "  elseif v == mine or hold ~= '0' and held and not is_larger(v, hold) then\n"             \
        "    redis.call('DEL', key)\n"                                                             \
        "    has[key] = false\n"                                                                   \
        "  end\n"                                                                                  \
        "end\n"                                                                                    \
        "return now\n"

/* KEYS: areas; the same one may come twice.  ARGV: when it was sent, then for each area seq,
 * available and a TTL (0: delete the count).  A count whose TTL has passed by now is not written.
 * Answers the time. */
#define GATE_COUNTS                                                                                \
    GATE_COUNT GATE_IS_LARGER GATE_NOW                                                             \
        "local has = {}\n"                                                                         \
        "local had = redis.call('MGET', unpack(KEYS))\n"                                           \
        "for i, key in ipairs(KEYS) do has[key] = count(had[i]) end\n"                             \
        "for i, key in ipairs(KEYS) do\n"                                                          \
        "  local seq, ttl = ARGV[3 * i - 1], ARGV[3 * i + 1] - late\n"                             \
        "  if ARGV[3 * i + 1] == '0' then\n"                                                       \
        "    redis.call('DEL', key)\n"                                                             \
        "    has[key] = nil\n"                                                                     \
        "  elseif ttl > 0 and (not has[key] or is_larger(seq, has[key])) then\n"                   \
        "    redis.call('SET', key, seq .. ' ' .. ARGV[3 * i], 'PX', string.format('%.0f', "       \
        "ttl))\n"                                                                                  \
        "    has[key] = seq\n"                                                                     \
        "  end\n"                                                                                  \
        "end\n"                                                                                    \
        "return now\n"

/* Answers with the value and the remaining TTL of each key.  No value and TTL -2: the key is gone;
 * no value and another TTL: it is of another type; TTL -1: it never ends.  A value is cut after 64
 * bytes: no longer one is ours. */
#define GATE_READ                                                                                  \
    "local had = redis.call('MGET', unpack(KEYS))\n"                                               \
    "local all = {}\n"                                                                             \
    "for i, key in ipairs(KEYS) do\n"                                                              \
    "  all[2 * i - 1] = had[i] and had[i]:sub(1, 64)\n"                                            \
    "  all[2 * i] = redis.call('PTTL', key)\n"                                                     \
    "end\n"                                                                                        \
    "return all\n"

#endif
