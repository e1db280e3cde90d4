import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readlink, rm, symlink, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { Writable } from 'node:stream'
import t from 'tap'
import { audiences } from '../../app.ts'
import { createUsher, sharedUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { hostOf } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'
import { createProxy } from '../helpers/proxy.ts'
import { until } from '../helpers/until.ts'
import { upload } from '../helpers/uploads.ts'

const PNG = Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0', 'latin1')
const UNKNOWN = '0190a5b4-7c3e-7d11-8000-000000000000'

const usher = await sharedUsher()
const members = await createUsher(t, { policy: { 'uploads:read': audiences.members } })

t.test('5.2 GET {fileUrl}', async (t) => {
  const { inject, options } = usher
  const { fileUrl, sha256 } = await upload(usher, '0123456789', 'digits.txt')
  const etag = `"${sha256}"`
  const get = (headers: Record<string, string>) => inject('GET', fileUrl, { headers })

  await t.test('5.2 a download has the uploaded bytes, their length, an entity tag and safe headers', async (t) => {
    const response = await get({})
    t.equal(response.statusCode, 200)
    t.equal(response.body, '0123456789')
    t.match(response.headers, {
      'content-length': '10',
      'content-type': 'text/plain; charset=utf-8',
      'content-disposition': 'inline; filename=digits.txt',
      'accept-ranges': 'bytes',
      'cache-control': 'no-cache',
      'content-security-policy': "sandbox; default-src 'none'",
      'x-content-type-options': 'nosniff',
      etag: '"84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"',
    })
    t.match(response.headers['last-modified'], /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/)
  })

  await t.test('5.2 HEAD returns the same headers without the bytes', async (t) => {
    const { headers: { date, connection, ...expected } } = await get({})
    const response = await inject('HEAD', fileUrl)
    t.equal(response.statusCode, 200)
    t.equal(response.body, '')
    t.match(response.headers, expected)
  })

  await t.test('5.2 a range gets 206', async (t) => {
    const ranges: Record<string, [string, string]> = {
      'bytes=0-3': ['0123', 'bytes 0-3/10'],
      'bytes=8-': ['89', 'bytes 8-9/10'],
      'bytes=-3': ['789', 'bytes 7-9/10'],
      'bytes=5-999': ['56789', 'bytes 5-9/10'],
      'bytes=-500': ['0123456789', 'bytes 0-9/10'],
      'BYTES=0-3, ,': ['0123', 'bytes 0-3/10'],
    }
    for (const [range, [body, contentRange]] of Object.entries(ranges)) {
      const response = await get({ range })
      t.equal(response.statusCode, 206, range)
      t.equal(response.body, body)
      t.match(response.headers, { 'content-range': contentRange, 'content-length': `${body.length}`, etag })
    }
    const head = await inject('HEAD', fileUrl, { headers: { range: 'bytes=0-3' } })
    t.equal(head.statusCode, 200, 'ranges are only for GET')
    t.equal(head.headers['content-length'], '10')
  })

  await t.test('5.2 several ranges and unknown units are ignored: 200', async (t) => {
    for (const range of ['lines=1-2', 'bytes=0-1,4-5']) t.equal((await get({ range })).body, '0123456789', range)
  })

  await t.test('5.2 a range beyond the end gets 416 { error }', async (t) => {
    const response = await get({ range: 'bytes=10-' })
    for (const range of ['bytes=x-y', 'bytes=-', 'bytes=-0', 'bytes=5-2', 'bytes=99999999999999999999-']) {
      t.equal((await get({ range })).statusCode, 416, range)
    }
    t.equal(response.statusCode, 416)
    t.equal(response.headers['content-range'], 'bytes */10')
    t.equal(response.headers['content-type'], 'application/json; charset=utf-8')
    t.same(response.json(), { error: 'The range is beyond the end', code: 'RANGE_NOT_SATISFIABLE' })
  })

  await t.test('5.2 If-Range applies the range only if the client has the current version', async (t) => {
    const range = 'bytes=0-3'
    const { headers: { 'last-modified': modified } } = await get({})
    t.equal((await get({ range, 'if-range': etag })).statusCode, 206)
    t.equal((await get({ range, 'if-range': `${modified}` })).statusCode, 206)
    t.equal((await get({ range, 'if-range': '"another"' })).statusCode, 200)
    t.equal((await get({ range, 'if-range': `W/${etag}` })).statusCode, 200)
    t.equal((await get({ range, 'if-range': 'Thu, 01 Jan 1970 00:00:00 GMT' })).statusCode, 200)
  })

  await t.test('5.2 a client that has the current version gets 304', async (t) => {
    const { headers: { 'last-modified': modified } } = await get({})
    for (const tags of [etag, `W/${etag}`, `"another", ${etag}`, '*']) {
      const response = await get({ 'if-none-match': tags })
      t.equal(response.statusCode, 304, tags)
      t.equal(response.body, '')
      t.match(response.headers, { etag, 'cache-control': 'no-cache' })
    }
    t.equal((await get({ 'if-modified-since': `${modified}` })).statusCode, 304)
    t.equal((await get({ 'if-none-match': '"another"', 'if-modified-since': `${modified}` })).statusCode, 200)
    t.equal((await get({ 'if-modified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' })).statusCode, 200)
  })

  await t.test('5.2 a failed precondition gets 412 { error }', async (t) => {
    t.equal((await get({ 'if-match': etag })).statusCode, 200)
    t.equal((await get({ 'if-match': '*' })).statusCode, 200)
    for (const [field, value] of [
      ['if-match', '"another"'], ['if-unmodified-since', 'Thu, 01 Jan 1970 00:00:00 GMT'],
    ] as const) {
      const response = await get({ [field]: value })
      t.equal(response.statusCode, 412)
      t.equal(response.json().code, 'PRECONDITION_FAILED')
    }
  })

  await t.test('5.2 the id is not case-sensitive', async (t) => {
    const id = fileUrl.slice('/api/uploads/'.length)
    t.equal((await inject('GET', `/api/uploads/${id.toUpperCase()}`)).body, '0123456789')
  })

  await t.test('5.2 an unknown id gets 404 { error }, whatever it looks like', async (t) => {
    for (const id of [
      UNKNOWN, 'x', '1', '..', '%2e%2e%2f%2e%2e%2fetc%2fpasswd', '%00', 'null', '%F0%9F%92%A9', `${UNKNOWN}0`,
      '__proto__',
    ]) {
      const response = await inject('GET', `/api/uploads/${id}`)
      t.equal(response.statusCode, 404, id)
      t.type(response.json().error, 'string')
    }
    t.same(
      (await inject('GET', `/api/uploads/${UNKNOWN}`)).json(), { error: 'Upload not found', code: 'UPLOAD_NOT_FOUND' }
    )
    t.equal((await inject('HEAD', `/api/uploads/${UNKNOWN}`)).statusCode, 404)
  })

  await t.test('1.4 another method gets 405', async (t) => {
    const { id } = await upload(usher, 'x')
    const response = await inject('PUT', `/api/uploads/${id}`)
    t.equal(response.statusCode, 405)
    t.equal(response.headers.allow, 'DELETE, GET, HEAD, PATCH')
    t.equal((await inject('PUT', '/api/uploads')).headers.allow, 'GET, HEAD, POST')
  })

  await t.test('5.2 a recorded file that is missing on the disk gets 404', async (t) => {
    const { fileUrl, id } = await upload(usher, 'x')
    await rm(`${options.uploadsDir}/files/${id}`)
    const response = await inject('GET', fileUrl)
    t.equal(response.statusCode, 404)
    t.same(response.json(), { error: 'Upload not found', code: 'UPLOAD_NOT_FOUND' })
    t.notOk(response.headers['content-disposition'])
  })

  await t.test('1.3 a disk error gets 500, which reveals no cause', async (t) => {
    const { fileUrl, id } = await upload(usher, 'x')
    const path = `${options.uploadsDir}/files/${id}`
    await rm(path)
    await symlink(id, path)
    const response = await inject('GET', fileUrl)
    t.equal(response.statusCode, 500)
    t.same(response.json(), { error: 'The server failed', code: 'INTERNAL_ERROR' })
  })

  await t.test('5.2 a file that has become shorter or longer is never mistaken for the next response on the connection', async (t) => {
    const [host = '', port] = (await hostOf(usher)).split(':')
    const cases = [['01234', 1], ['0123456789HTTP/1.1 200 OK\r\n\r\n', 2]] as const
    for (const [content, responses] of cases) {
      const { fileUrl, id } = await upload(usher, '0123456789')
      await writeFile(`${options.uploadsDir}/files/${id}`, content)
      const socket = connect(Number(port), host).on('error', () => {})
      let received = ''
      socket.on('data', (chunk) => { received += chunk })
      socket.write(
        `GET ${fileUrl} HTTP/1.1\r\nhost: x\r\n\r\nGET ${fileUrl} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`
      )
      await once(socket, 'close')
      t.equal(received.match(/HTTP\/1.1 200 OK/g)?.length, responses)
      t.equal(received.match(/0123456789/g)?.length ?? 0, responses === 1 ? 0 : 2)
    }
  })

  await t.test('5.2 an empty file can be downloaded', async (t) => {
    const { fileUrl } = await upload(usher, '')
    const response = await inject('GET', fileUrl)
    t.equal(response.statusCode, 200)
    t.equal(response.headers['content-length'], '0')
    t.equal(response.body, '')
    t.equal((await inject('GET', fileUrl, { headers: { range: 'bytes=0-0' } })).statusCode, 416)
  })

  await t.test('5.2 safe types are sent inline, all others as an attachment', async (t) => {
    const cases: [Buffer | string, string, string, string][] = [
      [PNG, 'a.html', 'image/png', 'inline; filename=a.html'],
      ['<script>alert(1)</script>', 'a.html', 'text/plain; charset=utf-8', 'inline; filename=a.html'],
      [
        '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', 'a.svg', 'application/xml',
        'attachment; filename=a.svg',
      ],
      ['%PDF-1.7\n', 'a.pdf', 'application/pdf', 'attachment; filename=a.pdf'],
      [
        '\0\x01\x02', '€.bin', 'application/octet-stream',
        'attachment; filename="?.bin"; filename*=UTF-8\'\'%E2%82%AC.bin',
      ],
    ]
    for (const [content, filename, type, disposition] of cases) {
      const { fileUrl } = await upload(usher, content, filename)
      const response = await inject('GET', fileUrl)
      t.equal(response.headers['content-type'], type)
      t.equal(response.headers['content-disposition'], disposition)
      t.same(response.rawPayload, Buffer.from(content))
    }
  })

  await t.test('5.2 other files in the folder are not served', async (t) => {
    await writeFile(`${options.uploadsDir}/files/${UNKNOWN}`, 'secret')
    t.equal((await inject('GET', `/api/uploads/${UNKNOWN}`)).statusCode, 404)
  })
})

nightly('5.2 the uploads of a deleted user get 404 at once', async (t) => {
  const mounted = await createUsher(t, { ...usher.options, prefix: '/accounts' })
  const { inject, admin, createUser, app } = mounted
  const user = await createUser()
  const { fileUrl } = await upload(mounted, 'x', 'a', user.headers)
  const kept = await upload(mounted, 'y')
  t.equal((await app.inject(fileUrl)).statusCode, 200)
  t.equal((await inject('DELETE', `/api/users/${user.id}`, { headers: admin.headers })).statusCode, 204)
  t.equal((await app.inject(fileUrl)).statusCode, 404)
  t.equal((await app.inject(kept.fileUrl)).statusCode, 200)
})

const options = { skip: !existsSync('/proc/self/fd') }

/** Returns the number of open files whose path contains a text. */
async function countOpen (text: string): Promise<number> {
  const links = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ''))
  )
  return links.filter((link) => link.includes(text)).length
}

nightly('1.13 of hundreds of downloads that are requested together on one connection, few files are open at once', options, async (t) => {
  // More than Node reads ahead, so the file of a response that cannot be sent stays open.
  const size = 400_000
  const { fileUrl } = await upload(usher, Buffer.alloc(size))
  const [host = '', port] = (await hostOf(usher)).split(':')
  const id = fileUrl.split('/').at(-1)!
  const get = `GET ${fileUrl} HTTP/1.1\r\nHost: x\r\n\r\n`
  const raw = connect(Number(port), host).pause()
  t.teardown(() => raw.destroy())
  raw.write(get.repeat(150))
  await until('files are open', async () => await countOpen(id) > 1)
  let [most, bytes] = [0, 0]
  raw.on('data', ({ length }) => { bytes += length }).resume()
  await until('some responses have arrived', async () => {
    most = Math.max(most, await countOpen(id))
    return bytes > 20 * size
  })
  raw.write(get.repeat(50) + get.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
  await once(raw, 'end')
  // Eight, and those that are being closed.
  t.ok(most < 50, `${most} files`)
  t.ok(bytes > 201 * size, 'all responses have arrived')
})

t.test('1.13 downloads that wait on a connection that is closed do not begin', options, async (t) => {
  const { fileUrl } = await upload(usher, Buffer.alloc(8_000_000))
  const [host = '', port] = (await hostOf(usher)).split(':')
  const id = fileUrl.split('/').at(-1)!
  const raw = connect(Number(port), host).pause()
  raw.write(`GET ${fileUrl} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(50))
  await until('files are open', async () => await countOpen(id) > 1)
  raw.resetAndDestroy()
  await until('the files are closed', async () => await countOpen(id) === 0)
  await upload(usher, 'One turn later')
  t.equal(await countOpen(id), 0)
})

t.test('1.13 downloads that were requested together on one connection close their files with it', options, async (t) => {
  const { fileUrl } = await upload(usher, Buffer.alloc(8_000_000))
  const [host = '', port] = (await hostOf(usher)).split(':')
  const id = fileUrl.split('/').at(-1)!
  const get = `GET ${fileUrl} HTTP/1.1\r\nHost: x\r\nAuthorization: ${usher.admin.headers.authorization}\r\n`
  for (const last of ['\r\n', 'Connection: upgrade\r\nUpgrade: h2c\r\n\r\n']) {
    const raw = connect(Number(port), host)
    raw.write(`${get}\r\n`.repeat(5) + get + last)
    await until('the files are open', async () => await countOpen(id) >= 5)
    raw.resetAndDestroy()
    await until('the files are closed', async () => await countOpen(id) === 0)
  }
  t.pass()
})

nightly('1.13 a client that disconnects before its downloads begin causes no errors in the log', async (t) => {
  const lines: { level: number, msg: string }[] = []
  const stream = new Writable({ write (line, _, done) { lines.push(JSON.parse(String(line))); done() } })
  const logging = await createUsher(t, {}, { logger: { stream, level: 'debug' } })
  const { fileUrl } = await upload(logging, 'Hello')
  const [host = '', port] = (await hostOf(logging)).split(':')
  // All requests have arrived then, and none has a response yet.
  logging.app.server.prependOnceListener('upgrade', (_, socket) => socket.destroy())
  const get = `GET ${fileUrl} HTTP/1.1\r\nHost: x\r\nAuthorization: ${logging.admin.headers.authorization}\r\n`
  const raw = connect(Number(port), host)
  t.teardown(() => raw.destroy())
  raw.write(`${get}\r\n`.repeat(5) + `${get}Connection: upgrade\r\nUpgrade: h2c\r\n\r\n`)
  await until(
    'the downloads have ended', () => lines.filter(({ msg }) => msg === 'a response was cut off').length === 5
  )
  t.same(lines.filter(({ level, msg }) => level > 30 && !msg.startsWith('The database')), [])
})

t.test('4 a download that needs a session is cut off when the session ends, and one of another session is not', async (t) => {
  const usher = members
  const size = 10_000_000
  const { fileUrl } = await upload(usher, Buffer.alloc(size))
  const [port, users] = [
    Number((await hostOf(usher)).split(':')[1]), [await usher.createUser(), await usher.createUser()],
  ]
  const downloads = await Promise.all(users.map(async ({ token }) => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    t.teardown(() => socket.destroy())
    socket.write(`GET ${fileUrl} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\nconnection: close\r\n\r\n`)
    const [first] = await once(socket, 'data')
    socket.pause()
    return { socket, received: first.length as number }
  }))
  t.equal((await usher.inject('POST', '/api/auth/logout', { headers: users[0]!.headers })).statusCode, 204)
  const [ended, other] = await Promise.all(downloads.map(async ({ socket, received }) => {
    socket.on('data', ({ length }) => { received += length }).resume()
    await once(socket, 'close')
    return received
  }))
  t.ok(ended! < size, `${ended} bytes`)
  t.ok(other! > size, `${other} bytes`)
})

nightly('4 without notifications, a download that needs a session is cut off as well', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const usher = members
  const deaf = await createUsher(t, { ...usher.options, notificationsUrl: proxy.url })
  const { fileUrl } = await upload(usher, Buffer.alloc(10_000_000))
  const user = await usher.createUser()
  const [socket, [connection]] = await Promise.all([
    hostOf(deaf).then((host) => connect(Number(host.split(':')[1]), '127.0.0.1').on('error', () => {})),
    once(deaf.app.server, 'connection'),
  ])
  t.teardown(() => socket.destroy())
  socket.write(`GET ${fileUrl} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.token}\r\nconnection: close\r\n\r\n`)
  await once(socket, 'data')
  socket.pause()
  const closed = once(connection, 'close')
  proxy.refuse()
  t.equal((await usher.inject('POST', '/api/auth/logout', { headers: user.headers })).statusCode, 204)
  await closed
})
