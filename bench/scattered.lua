-- Every client gets a seat of its own, far from the previous one:
--   wrk ... -s scattered.lua URL -- EVENTS SECTIONS ROWS SEATS [name=value ...]
-- EVENTS is a comma-separated list of event ids, each with SECTIONS sections S1, S2 ... of ROWS
-- rows A, B ... of SEATS seats.  Requests are numbered over all threads; request n is for the seat
-- at n * STRIDE in its group of events, so no seat is asked for twice until all have been.
--
--   threads=N    of wrk; default 2
--   group=N      events over which one permutation is spread; default 1: one event after the other
--   first=N      number of the first request; default 0
--   count=N      stop after N requests, or a few more; default: when wrk's time is up
--   due=MS       end every hold at this instant (milliseconds since 1970), by its ttl_ms
--   pause_ms=N   the pause of each connection between two requests

dofile((debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "summary.lua")

local STRIDE = 61803399 -- no factor in common with any number of seats used here

local events, prefixes = {}, {}
local sections, rows, seats, group_seats
local option = { threads = 2, group = 1, first = 0, count = math.huge, due = 0, pause_ms = 0 }
local n, n_end
local floor = math.floor

first_ms, last_ms = nil, nil -- read by summary.lua when count was given

function init(args)
   for id in args[1]:gmatch("[^,]+") do
      events[#events + 1] = '{"event":"' .. id .. '","seats":["'
   end
   sections, rows, seats = tonumber(args[2]), tonumber(args[3]), tonumber(args[4])
   for i = 5, #args do
      local name, value = args[i]:match("^([%w_]+)=(%d+)$")
      option[name] = tonumber(value)
   end
   for section = 1, sections do
      for row = 1, rows do
         prefixes[#prefixes + 1] = "S" .. section .. "-" .. row_name(row) .. "-"
      end
   end
   group_seats = option.group * sections * rows * seats
   n = option.first + thread_index - option.threads
   n_end = option.first + option.count - option.threads
   wrk.method, wrk.path = "POST", "/v1/holds"
   wrk.headers["Content-Type"] = "application/json"
   if option.pause_ms > 0 then
      delay = function() return option.pause_ms end
   end
end

function request()
   n = n + option.threads
   local at = (n % group_seats) * STRIDE % group_seats
   local per_event = #prefixes * seats
   local event = floor(n / group_seats) * option.group + floor(at / per_event)
   local seat = at % per_event
   local body = events[event % #events + 1] .. prefixes[floor(seat / seats) + 1] ..
      (seat % seats + 1)
   if option.due > 0 then
      body = body .. '"],"ttl_ms":' .. math.max(1000, option.due - now_ms()) .. "}"
   else
      body = body .. '"]}'
   end
   if option.count < math.huge and n > option.first then -- wrk throws the very first one away
      last_ms = now_ms()
      first_ms = first_ms or last_ms
      if n >= n_end then
         wrk.thread:stop()
      end
   end
   return head(#body) .. body
end
