-- Posts the request bodies in BODY_DIR (0.body, 1.body, …) in turn to BODY_PATH, and compares every sixteenth
-- response with the numbers in N.expected, unless it is binary. wrk keeps one request in flight on each connection and
-- does not report which request a response belongs to, so a response must match one of the requests. Prints one JSON
-- object at the end.
local directory, path = os.getenv("BODY_DIR"), os.getenv("BODY_PATH")
local binary = os.getenv("BODY_BINARY") == "1"
local requests, expected, sent, seen, checked, wrong = {}, {}, 0, 0, 0, 0
local threads = {}

local function read(name)
  local file = io.open(directory .. "/" .. name, "rb")
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  return text
end

local function numbers(text)
  local found = {}
  for number in text:gmatch("%-?%d+%.?%d*[eE]?[%-+]?%d*") do found[#found + 1] = tonumber(number) end
  return found
end

function setup(thread) threads[#threads + 1] = thread end

function init(arguments)
  local headers = {}
  for name, value in os.getenv("BODY_HEADERS"):gmatch("([^\n:]+): ([^\n]+)") do headers[name] = value end
  local index = 0
  while true do
    local body = read(index .. ".body")
    if not body then break end
    requests[#requests + 1] = wrk.format("POST", path, headers, body)
    expected[#expected + 1] = numbers(read(index .. ".expected"))
    index = index + 1
  end
  checked_answers, wrong_answers = 0, 0
end

function request()
  sent = sent + 1
  return requests[sent % #requests + 1]
end

local function fits(got, want)
  if #got < #want then return false end
  local offset = #got - #want
  for index, number in ipairs(want) do
    if math.abs(got[offset + index] - number) > 1e-3 * math.max(1, math.abs(number)) then return false end
  end
  return true
end

function response(status, headers, body)
  seen = seen + 1
  if binary or seen % 16 ~= 0 or status ~= 200 then return end
  local list = body:match("%[.*%]")
  local got = list and numbers(list) or {}
  checked_answers = checked_answers + 1
  for _, want in ipairs(expected) do
    if fits(got, want) then return end
  end
  wrong_answers = wrong_answers + 1
end

function done(summary, latency, rates)
  for _, thread in ipairs(threads) do
    checked = checked + thread:get("checked_answers")
    wrong = wrong + thread:get("wrong_answers")
  end
  local errors = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format(
    '\n{"requests":%d,"seconds":%.6f,"failed":%d,"broken":%d,"checked":%d,"wrong":%d,"p50_ms":%.3f,"p99_ms":%.3f}\n',
    summary.requests, summary.duration / 1e6, summary.errors.status, errors, checked, wrong,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
