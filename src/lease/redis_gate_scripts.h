/* What the gate (gate.h) has the server do.  Each script is atomic there, writes nothing before it
 * has read all it judges by, and touches no key but those it is given, all of one event (look's
 * are of any).
 *
 * MGET says nothing of a key of another type, so that such a key is as good as none.  Numbers stay
 * texts: a hold's key has up to 19 digits and Lua's numbers keep 15.  The larger one has more
 * digits or, of as many, comes later. */
#ifndef HF_LEASE_REDIS_GATE_SCRIPTS_H
#define HF_LEASE_REDIS_GATE_SCRIPTS_H

#define GATE_IS_HOLD                                                                               \
    "local function is_hold(v) return v and #v <= 19 and v:find('^[1-9]%d*$') end\n"
#define GATE_IS_LARGER "local function is_larger(a, b) return #a > #b or #a == #b and a > b end\n"
/* seq, available; nothing: no count. */
#define GATE_COUNT                                                                                 \
    "local function count(v)\n"                                                                    \
    "  if not v or #v > 40 then return end\n"                                                      \
    "  local seq, left = v:match('^(%d+) (%-?%d+)$')\n"                                            \
    "  if seq and (#seq == 1 or seq:sub(1, 1) ~= '0') then return seq, left end\n"                 \
    "end\n"

/* KEYS: seats, areas.  ARGV: the claim's value, its TTL, the number of seats, a quantity an area.
 * Answers 1, or of a refusal { number of the first area that is short or 0, how many it has,
 * numbers of the seats that are taken ... }.  Cost: one MGET, and a SET a seat if granted. */
#define GATE_CLAIM                                                                                 \
    GATE_IS_HOLD                                                                                   \
    "if #KEYS == 0 then return 1 end\n"                                                            \
    "local mine, n = ARGV[1], tonumber(ARGV[3])\n"                                                 \
    "local had = redis.call('MGET', unpack(KEYS))\n"                                               \
    "local no\n"                                                                                   \
    "for i = 1, n do\n"                                                                            \
    "  local v = had[i]\n"                                                                         \
    "  if v and v ~= mine and (is_hold(v) or #v == 34 and v:find('^c:%x+$')) then\n"               \
    "    no = no or {0, '0'}\n"                                                                    \
    "    no[#no + 1] = i\n"                                                                        \
    "  end\n"                                                                                      \
    "end\n"                                                                                        \
    "if n < #KEYS then\n" GATE_COUNT "for i = n + 1, #KEYS do\n"                                   \
    "  local _, left = count(had[i])\n"                                                            \
    "  if left and tonumber(left) < tonumber(ARGV[3 + i - n]) then\n"                              \
    "    no = no or {0, '0'}\n"                                                                    \
    "    no[1], no[2] = i - n, left\n"                                                             \
    "    break\n"                                                                                  \
    "  end\n"                                                                                      \
    "end end\n"                                                                                    \
    "if no then return no end\n"                                                                   \
    "for i = 1, n do redis.call('SET', KEYS[i], mine, 'PX', ARGV[2]) end\n"                        \
    "return 1\n"

/* KEYS: seats, one may come twice.  ARGV: the claim's value, then a hold (0: nobody) and a TTL
 * (0: no more) a seat.  Cost: one MGET, and at most a command a seat. */
#define GATE_SETTLE                                                                                \
    GATE_IS_HOLD GATE_IS_LARGER                                                                    \
        "local mine, now = ARGV[1], {}\n"                                                          \
        "local had = redis.call('MGET', unpack(KEYS))\n"                                           \
        "for i, key in ipairs(KEYS) do now[key] = had[i] end\n"                                    \
        "for i, key in ipairs(KEYS) do\n"                                                          \
        "  local v, hold, ttl = now[key], ARGV[2 * i], ARGV[2 * i + 1]\n"                          \
        "  local held = is_hold(v)\n"                                                              \
        "  if hold ~= '0' and ttl ~= '0' then\n"                                                   \
        "    if not (held and is_larger(v, hold)) then\n"                                          \
        "      redis.call('SET', key, hold, 'PX', ttl)\n"                                          \
        "      now[key] = hold\n"                                                                  \
        "    end\n"                                                                                \
        "  elseif v == mine or hold ~= '0' and held and not is_larger(v, hold) then\n"             \
        "    redis.call('DEL', key)\n"                                                             \
        "    now[key] = false\n"                                                                   \
        "  end\n"                                                                                  \
        "end\n"                                                                                    \
        "return 1\n"

/* KEYS: areas, one may come twice.  ARGV: seq, available and a TTL (0: delete) an area. */
#define GATE_COUNTS                                                                                \
    GATE_COUNT GATE_IS_LARGER                                                                      \
        "local now = {}\n"                                                                         \
        "local had = redis.call('MGET', unpack(KEYS))\n"                                           \
        "for i, key in ipairs(KEYS) do now[key] = count(had[i]) end\n"                             \
        "for i, key in ipairs(KEYS) do\n"                                                          \
        "  local seq = ARGV[3 * i - 2]\n"                                                          \
        "  if ARGV[3 * i] == '0' then\n"                                                           \
        "    redis.call('DEL', key)\n"                                                             \
        "    now[key] = nil\n"                                                                     \
        "  elseif not now[key] or is_larger(seq, now[key]) then\n"                                 \
        "    redis.call('SET', key, seq .. ' ' .. ARGV[3 * i - 1], 'PX', ARGV[3 * i])\n"           \
        "    now[key] = seq\n"                                                                     \
        "  end\n"                                                                                  \
        "end\n"                                                                                    \
        "return 1\n"

/* Answers a value and a remaining TTL a key: no value and -2 is gone, no value and another TTL is
 * of another type, -1 is for ever.  Of a long value the beginning, which is strange enough. */
#define GATE_LOOK                                                                                  \
    "local had = redis.call('MGET', unpack(KEYS))\n"                                               \
    "local all = {}\n"                                                                             \
    "for i, key in ipairs(KEYS) do\n"                                                              \
    "  all[2 * i - 1] = had[i] and had[i]:sub(1, 64)\n"                                            \
    "  all[2 * i] = redis.call('PTTL', key)\n"                                                     \
    "end\n"                                                                                        \
    "return all\n"

#endif
