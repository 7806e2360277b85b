-- Requests the same page repeatedly:  wrk ... -s get.lua URL -- PATH ACCEPT_ENCODING

dofile((debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "summary.lua")

local text

function init(args)
   wrk.path = args[1]
   wrk.headers["Accept-Encoding"] = args[2]
   text = wrk.format()
end

function request() return text end
