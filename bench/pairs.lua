-- Every client gets two adjacent seats:
--   wrk ... -s pairs.lua URL -- EVENT SECTIONS ROWS SEATS [name=value ...]
-- The event is as in scattered.lua; its pairs (seats 1 and 2 of a row, 3 and 4 ...) are numbered
-- through.  Pair p is free where p * 40503 % 65536 < free, as bench/rows_api.mjs leaves it.
--
--   best=1         let the server choose; default 0: name free pairs, far from each other
--   free=N         default 65536: all
--   from=S         name pairs of sections S and later; default 1
--   threads=N      of wrk; default 2
--   first=N        number of the first request; default 0
--   count=N        stop after N requests, or a few more

dofile((debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "summary.lua")

local STRIDE = 61803419 -- a prime, so that all pairs are met before any is met again

local option = { best = 0, free = 65536, from = 1, threads = 2, first = 0, count = math.huge }
local event, prefixes, per_row, n_pairs, first_pair, n, n_end, p = nil, {}, 0, 0, 0, 0, 0, 0
local floor = math.floor

first_ms, last_ms = nil, nil -- read by summary.lua

local function is_free(pair) return pair * 40503 % 65536 < option.free end

-- The next free pair of this thread's own: every `threads`th of all in the order of the stride.
local function next_pair()
   local pair
   repeat
      repeat
         p = p + 1
         pair = first_pair + p * STRIDE % (n_pairs - first_pair)
      until is_free(pair)
      n = n + 1
   until n % option.threads == thread_index and n > option.first
   return pair
end

function init(args)
   event = args[1]
   local sections, rows, seats = tonumber(args[2]), tonumber(args[3]), tonumber(args[4])
   for i = 5, #args do
      local name, value = args[i]:match("^([%w_]+)=(%d+)$")
      option[name] = tonumber(value)
   end
   for section = 1, sections do
      for row = 1, rows do
         prefixes[#prefixes + 1] = "S" .. section .. "-" .. row_name(row) .. "-"
      end
   end
   per_row = seats / 2
   n_pairs = #prefixes * per_row
   first_pair = (option.from - 1) * rows * per_row
   n_end = option.count / option.threads
   wrk.method, wrk.path = "POST", "/v1/holds"
   wrk.headers["Content-Type"] = "application/json"
end

local made = 0

function request()
   local body
   if option.best > 0 then
      body = '{"event":"' .. event .. '","best_available":{"quantity":2}}'
   else
      local pair = next_pair()
      local row, seat = prefixes[floor(pair / per_row) + 1], pair % per_row * 2 + 1
      body = '{"event":"' .. event .. '","seats":["' .. row .. seat .. '","' .. row ..
         (seat + 1) .. '"]}'
   end
   made = made + 1
   if made > 1 then -- wrk throws the very first one away
      last_ms = now_ms()
      first_ms = first_ms or last_ms
      if made > n_end then
         wrk.thread:stop()
      end
   end
   return head(#body) .. body
end
