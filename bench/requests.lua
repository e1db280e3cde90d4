-- The requests of one work, for wrk. The arguments are the work, a file of keys (ids of users; cursors for `page` and
-- `longPage`; query strings for `listed`; ids and entity tags for `revalidated`), a bearer token, and `statuses` to count 503 separately, which makes wrk somewhat slower.
local keys, work, headers, count, seed = {}, nil, {}, 0, nil
local json = { ['Content-Type'] = 'application/json' }
local threads = {}
refused = 0

local function some () return keys[math.random(#keys)] end

-- The address that data.ts has given to the user with this id.
local function email (id)
  return 'user' .. string.format('%d', tonumber(id:sub(1, 8), 16) * 65536 + tonumber(id:sub(10, 13), 16) - 1700000000000) .. '@bench.example.com'
end

local make = {
  user = function () return wrk.format('GET', '/api/users/' .. some(), {}) end,
  userByMember = function () return wrk.format('GET', '/api/users/' .. some(), headers) end,
  revalidated = function ()
    local id, tag = some():match('(%S+) (%S+)')
    return wrk.format('GET', '/api/users/' .. id, { ['If-None-Match'] = tag })
  end,
  list = function () return wrk.format('GET', '/api/users?role=user&limit=50', {}) end,
  firstPage = function () return wrk.format('GET', '/api/users?limit=50', {}) end,
  page = function () return wrk.format('GET', '/api/users?limit=50&after=' .. some(), {}) end,
  longPage = function () return wrk.format('GET', '/api/users?limit=1000&after=' .. some(), {}) end,
  listed = function () return wrk.format('GET', '/api/users?' .. some(), {}) end,
  protected = function () return wrk.format('GET', '/api/protected', headers) end,
  graphql = function ()
    return wrk.format('POST', '/graphql', json,
      '{"query":"query($id: ID!) { user(id: $id) { id name posts(first: 10) { id title } } }","variables":{"id":"' .. some() .. '"}}')
  end,
  postgraphile = function ()
    return wrk.format('POST', '/graphql', json,
      '{"query":"query($id: UUID!) { userByRowId(rowId: $id) { rowId name ' ..
      'postsByAuthorId(first: 10, orderBy: [PRIMARY_KEY_DESC]) { nodes { rowId title } } } }","variables":{"id":"' .. some() .. '"}}')
  end,
  createUser = function ()
    return wrk.format('POST', '/api/users', headers, '{"name":"Somebody","email":"' .. seed .. '.' .. count .. '@write.example.com"}')
  end,
  replaceUser = function ()
    local id = some()
    return wrk.format('PUT', '/api/users/' .. id, headers, '{"name":"Name ' .. count .. '","email":"' .. email(id) .. '","role":"user"}')
  end,
  patchUser = function () return wrk.format('PATCH', '/api/users/' .. some(), headers, '{"name":"Name ' .. count .. '"}') end,
  createPost = function ()
    return wrk.format('POST', '/graphql', headers, '{"query":"mutation { createPost(input: { title: \\"A post\\", content: \\"Words\\" }) { id title } }"}')
  end,
}

-- Every request has a key of its own.
local function once (name)
  return function ()
    headers['Idempotency-Key'] = seed .. '-' .. count .. '-0123456789abcdef'
    return make[name]()
  end
end
make.createUserOnce = once('createUser')
make.createPostOnce = once('createPost')

-- Two of twenty requests are writes.
local mix = {
  'user', 'protected', 'user', 'list', 'graphql', 'user', 'protected', 'firstPage', 'user', 'createUser',
  'user', 'protected', 'user', 'list', 'graphql', 'user', 'protected', 'firstPage', 'user', 'createPost',
}
make.mixed = function () return make[mix[count % #mix + 1]]() end

function setup (thread) threads[#threads + 1] = thread end

function init (args)
  work = make[args[1]]
  for key in io.lines(args[2]) do keys[#keys + 1] = key end
  headers['Content-Type'] = 'application/json'
  if args[3] then headers['Authorization'] = 'Bearer ' .. args[3] end
  if args[4] then response = function (status) if status == 503 then refused = refused + 1 end end end
  math.randomseed(os.time() + tonumber(tostring({}):sub(8), 16) % 1000000)
  seed = math.random(1, 1000000000)
end

function request ()
  count = count + 1
  return work()
end

-- load.ts parses the last line.
function done (summary, latency)
  local errors, sum = summary.errors, 0
  for _, thread in ipairs(threads) do sum = sum + thread:get('refused') end
  print(string.format('{"seconds":%f,"answers":%d,"not2xx":%d,"refused":%d,"socketErrors":%d,"p50":%f,"p99":%f,"max":%f}',
    summary.duration / 1e6, summary.requests, errors.status, sum, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, latency.max / 1000))
end
