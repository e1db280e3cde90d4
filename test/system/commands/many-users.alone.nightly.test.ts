import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import postgres from 'postgres'
import t from 'tap'
import type { Output, Values } from '../../../node/commands/command.ts'
import { commands } from '../../../node/commands/index.ts'
import { createShell } from '../../helpers/command.ts'
import { createDatabase } from '../../helpers/database.ts'
import { nodeCommand } from '../../helpers/node.ts'
import { until } from '../../helpers/until.ts'

const admin = { email: 'root@example.com' }

t.test('14.4 commands change many users of a file, report what they reject, and continue where they were killed', async (t) => {
  const url = await createDatabase(t)
  const folder = t.testdir()
  const given = {
    ...process.env, DATABASE_URL: url, SECRET: 'a secret of many words', DATA_DIR: join(folder, 'data'), PRINT_SECRETS: 'false',
  }
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end())
  const runMany = async (name: string, values: Values = {}, ...args: string[]) => {
    const { default: command } = await commands[name]!.load()
    return await command.run(values, args, createShell(given, folder)) as Output
  }
  await runMany('admin create', { email: admin.email, name: 'Root' })
  await runMany('users create', { email: 'ada@example.com', name: 'Ada' })
  await sql`
    insert into usher.users (id, name, email, role, password_hash)
    select gen_random_uuid(), 'User ' || number, 'user' || number || '@example.com', 'user', 'x' from generate_series(1, 60) as number`
  const file = join(folder, 'users.txt')
  const addresses = Array.from({ length: 60 }, (_, index) => `user${index + 1}@example.com`)
  const [{ id }] = await sql`select id from usher.users where email = 'user1@example.com'` as [{ id: string }]
  writeFileSync(file, [id, 'nobody@example.com', '', ` ${admin.email} `, 'x'.repeat(2000), ...addresses].join('\r\n'))
  const disabled = async () => (await sql`select count(*)::int as count from usher.users where disabled`)[0]!['count']

  const command = nodeCommand([join(import.meta.dirname, '../../../node/server.ts'), 'users', 'disable', '--file', file])
  const child = spawn(...command.command, { cwd: folder, env: { ...given, ...command.env }, stdio: 'ignore' })
  await until('some are disabled', async () => await disabled() > 2)
  child.kill('SIGKILL')
  await once(child, 'exit')
  const before = await disabled()
  t.ok(before < 60, 'it was killed halfway')
  const result = await runMany('users disable', { file })
  t.match(result, { isFailure: true, json: { rejected: 3, rejectedFile: `${file}.rejected.ndjson` } })
  const { changed, skipped, resumed } = result.json as { changed: number, skipped: number, resumed: number }
  t.equal(changed + skipped, 61, 'each line counts once')
  t.ok(resumed >= before - 1 && resumed <= before, `${resumed} by the run that was killed, of ${before}`)
  t.equal(await disabled(), 60)
  t.equal((await sql`select count(*)::int as count from usher.audit where action = 'user.disable'`)[0]!['count'], 60)
  t.match(readFileSync(`${file}.rejected.ndjson`, 'utf8').trim().split('\n').map((line) => JSON.parse(line)), [
    { line: 2, reason: 'There is no user nobody@example.com.', user: 'nobody@example.com' },
    { line: 4, reason: /last admin/i, user: admin.email },
    { line: 5, reason: 'The line has more than 1000 bytes' },
  ])
  await t.rejects(runMany('users enable', { file }), { message: /rejected\.ndjson exists: move it away/ })

  writeFileSync(file, addresses.join('\n'))
  const rejected = join(folder, 'others')
  t.match((await runMany('users enable', { file, rejected })).json, { changed: 60, skipped: 0, rejected: 0, rejectedFile: null })
  t.match((await runMany('users enable', { file, rejected })).json, { changed: 0, skipped: 60, resumed: 0 })
  t.match((await runMany('users reset-password', { file, rejected })).json, { changed: 60 })
  t.equal((await sql`select count(*)::int as count from usher.users where password_hash = 'x'`)[0]!['count'], 0)
  await t.rejects(runMany('users reset-password', { file, rejected, mail: true }), { message: /^No mails can be sent/ })
  await t.rejects(runMany('users reset-password', { file, 'password-stdin': true }), { message: /one password/ })
  await t.rejects(runMany('users disable', { file }, 'ada@example.com'), { message: /Only one of USER and --file/ })
  await t.rejects(runMany('users delete', { file, rejected }), { message: /no terminal to confirm it/ })
  t.match((await runMany('users delete', { file, rejected, yes: true })).json, { changed: 60, rejected: 0 })
  t.equal((await sql`select email from usher.users where email like 'user%'`).length, 0)
})
