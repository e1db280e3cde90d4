-- The requests of one kind of work, for wrk: arguments are the work, a file of user ids, a bearer token.
local ids, work, headers, count, seed = {}, nil, {}, 0, nil

function init (args)
  work = args[1]
  for id in io.lines(args[2]) do ids[#ids + 1] = id end
  headers['Content-Type'] = 'application/json'
  if args[3] then headers['Authorization'] = 'Bearer ' .. args[3] end
  math.randomseed(os.time() + tonumber(tostring({}):sub(8), 16) % 1000000)
  seed = math.random(1, 1000000000)
end

local function some () return ids[math.random(#ids)] end

function request ()
  count = count + 1
  if work == 'user' then return wrk.format('GET', '/api/users/' .. some(), { }) end
  if work == 'list' then return wrk.format('GET', '/api/users?role=user&limit=50', { }) end
  if work == 'protected' then return wrk.format('GET', '/api/protected', headers) end
  if work == 'graphql' then
    return wrk.format('POST', '/graphql', { ['Content-Type'] = 'application/json' },
      '{"query":"query($id: ID!) { user(id: $id) { id name posts(first: 10) { id title } } }","variables":{"id":"' .. some() .. '"}}')
  end
  if work == 'createUser' then
    return wrk.format('POST', '/api/users', headers, '{"name":"Somebody","email":"' .. seed .. '.' .. count .. '@write.example.com"}')
  end
  return wrk.format('POST', '/graphql', headers, '{"query":"mutation { createPost(input: { title: \\"A post\\", content: \\"Words\\" }) { id title } }"}')
end
