-- Every client wants the same seat:   wrk ... -s contended.lua URL -- BODY [keyed]
-- Sends the same request repeatedly; with `keyed`, each request has an Idempotency-Key of its own.

dofile((debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "summary.lua")

local head, tail, n = nil, nil, 0

local function keyed_request()
   n = n + 1
   return head .. n .. tail
end

function init(args)
   wrk.method, wrk.path, wrk.body = "POST", "/v1/holds", args[1]
   wrk.headers["Content-Type"] = "application/json"
   if args[2] == "keyed" then
      wrk.headers["Idempotency-Key"] = "@"
      local text = wrk.format()
      local at = text:find("@", 1, true)
      head = text:sub(1, at - 1) .. "bench-contended-" .. now_ms() .. "-" .. thread_index .. "-"
      tail = text:sub(at + 1)
      request = keyed_request
   end
end
