-- Shared by the load scripts: prints the results of a wrk run as one line of JSON, which
-- bench/load.mjs reads.

local ffi = require("ffi")
ffi.cdef [[
typedef struct { long sec; long nsec; } bench_time;
int clock_gettime(int clock, bench_time *out);
]]
local time = ffi.new("bench_time")

-- Returns the wall clock in milliseconds since 1970.
function now_ms()
   ffi.C.clock_gettime(0, time)
   return tonumber(time.sec) * 1000 + math.floor(tonumber(time.nsec) / 1e6)
end

-- Names rows: A, B ... Z, AA, AB ...
function row_name(i)
   local name = ""
   while i > 0 do
      name = string.char(65 + (i - 1) % 26) .. name
      i = math.floor((i - 1) / 26)
   end
   return name
end

-- Returns the part of a request before its body, which depends only on the body's length.
local heads = {}
function head(body_len)
   local text = heads[body_len]
   if not text then
      wrk.body = string.rep("@", body_len)
      text = wrk.format():sub(1, -1 - body_len)
      heads[body_len] = text
   end
   return text
end

local threads = {}

-- wrk calls this once per thread, before it starts.
function setup(thread)
   thread:set("thread_index", #threads)
   threads[#threads + 1] = thread
end

-- wrk calls this once, at the end.  `counted_ms` is the time from the first request to the last if
-- a script stops by count, and 0 otherwise.
function done(summary, latency)
   local first, last = math.huge, 0
   for _, thread in ipairs(threads) do
      first = math.min(first, thread:get("first_ms") or math.huge)
      last = math.max(last, thread:get("last_ms") or 0)
   end
   local e = summary.errors
   print(string.format(
      'JSON {"requests":%d,"duration_us":%d,"refused":%d,"failed":%d,"counted_ms":%d,' ..
      '"p50_us":%d,"p99_us":%d,"max_us":%d}',
      summary.requests, summary.duration, e.status, e.connect + e.read + e.write + e.timeout,
      last > 0 and last - first or 0,
      latency:percentile(50), latency:percentile(99), latency.max))
end
