import t from 'tap'
import usher from '../../../app.ts'
import { mountOptions, openHost } from '../../helpers/host.ts'
import { listen, sendRaw, withoutDate } from '../../helpers/wire.ts'

t.test('9 upgrade requests that are not for Usher get the same response as without it, even if the host handles no upgrades', async (t) => {
  const key = 'sec-websocket-version: 13\r\nsec-websocket-key: MDEyMzQ1Njc4OTAxMjM0NQ=='
  const upgrades = [
    'GET /mine?a=1 HTTP/1.1\r\nhost: x\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n',
    'POST /echo HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\ncontent-type: application/json\r\ncontent-length: 7\r\n\r\n{"a":1}',
    'POST /echo HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n7\r\n{"a":1}\r\n0\r\n\r\n',
    `GET /mine HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n${key}\r\n\r\n`,
    `GET /none HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n${key}\r\n\r\n`,
    'GET /mine HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: TLS/1.0\r\n\r\n',
    'OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n',
  ]
  const [without, app] = [openHost(t), openHost(t)]
  await app.register(usher, await mountOptions(t))
  for (const host of [without, app]) {
    host.get('/mine', async ({ headers, query, ip }) => ({ host: headers.host, query, ip }))
    host.post('/echo', async ({ body }) => ({ body }))
  }
  const [before, after] = [await listen(without), await listen(app)]
  for (const upgrade of upgrades) {
    const [expected, actual] = [await sendRaw(before.port, upgrade), await sendRaw(after.port, upgrade)]
    t.match(expected, /^HTTP\/1.1 /)
    t.equal(withoutDate(actual), withoutDate(expected), upgrade)
  }
})
