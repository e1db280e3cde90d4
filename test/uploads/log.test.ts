import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { createKey } from '../helpers/api-keys.ts'
import { upload } from '../helpers/uploads.ts'

t.test('13 the log has no token, API key or cookie of an upload, whatever its level is', async (t) => {
  const lines: string[] = []
  const stream = { write: (line: string) => void lines.push(line) }
  const usher = await createUsher(t, {}, { logger: { level: 'trace', stream } })
  const user = await usher.createUser()
  const { key } = await createKey(usher, user)
  lines.length = 0
  for (const authorization of [`Bearer ${user.token}`, `Bearer ${key}`]) {
    await upload(usher, 'Hello', undefined, { authorization, cookie: user.cookie })
  }
  const log = lines.join('')
  t.match(log, /starting multipart parsing/, 'the level is low enough')
  for (const secret of [user.token, key, user.cookie.split('=')[1]!]) t.notOk(log.includes(secret))
})
