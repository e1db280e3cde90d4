import t from 'tap'
import { createDatabase } from '../../helpers/database.ts'
import { startNode } from '../../helpers/node.ts'

t.test('4 without a terminal a node prints no password, but what to do instead', async (t) => {
  const url = await createDatabase(t)
  const cwd = t.testdir()
  const admin = { email: 'root@example.com', password: 'a good long password' }
  const first = await startNode(t, { cwd, settings: { DATABASE_URL: url } })
  t.match(
    first.stderr,
    'Set ADMIN_EMAIL and ADMIN_PASSWORD and start again, or run "npm start -- admin create --email <address>".\n'
  )
  t.match(first.stderr, 'Mails are neither sent nor printed: set SMTP_URL and MAIL_FROM to send them.\n')
  t.notMatch(first.stderr, /The first admin is/)
  t.same(await (await first.fetch('/api/users')).json(), [], 'there is no account whose password nobody knows')
  const second = await startNode(
    t, { cwd, settings: { DATABASE_URL: url, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password } }
  )
  t.match(await second.login(admin), { token: String })
  const third = await startNode(t, { cwd, settings: { DATABASE_URL: url } })
  t.notMatch(third.stderr, /There is no admin/)
})
