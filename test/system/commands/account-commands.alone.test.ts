import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import postgres from 'postgres'
import t from 'tap'
import { openTotp, sealTotp } from '../../../db/sign-in/totp/totp.ts'
import { HEARTBEAT } from '../../../db/driver/notification-connection.ts'
import type { Command, Output, Values } from '../../../node/commands/command.ts'
import { commands } from '../../../node/commands/index.ts'
import { explainFailure, openStorage } from '../../../node/storage.ts'
import { parseSettings } from '../../../node/settings/settings.ts'
import { readStartSettings } from '../../../node/preflight.ts'
import { formatTable } from '../../../node/commands/table.ts'
import { describeAll, describeCommand, describeGroup } from '../../../node/commands/usage.ts'
import { createUsher } from '../../helpers/app.ts'
import { createShell } from '../../helpers/command.ts'
import { createDatabase } from '../../helpers/database.ts'
import { startFakeS3 } from '../../helpers/fake-s3.ts'
import { startMailServer } from '../../helpers/mail.ts'
import { nightly } from '../../helpers/nightly.ts'
import { startNode } from '../../helpers/node.ts'
import { until } from '../../helpers/until.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }
const SECRET = 'a secret of many words'
const DATABASE_URL = await createDatabase(t)
const cwd = t.testdir()
const settings = {
  DATABASE_URL, SECRET, DATA_DIR: join(cwd, 'data'), ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password,
}

/** The environment of the commands. */
const env: NodeJS.ProcessEnv = { ...process.env, ...settings, PRINT_SECRETS: 'false' }

/** Runs a command in this process, and returns its output. */
async function run (name: string, values: Values = {}, ...args: string[]): Promise<Output> {
  const { default: command } = await commands[name]!.load()
  return await command.run(values, args, createShell(env, cwd)) as Output
}

/** Runs a command, and returns what it prints with --json. */
const json = async <Result>(name: string, values: Values = {}, ...args: string[]) =>
  JSON.parse(JSON.stringify((await run(name, values, ...args)).json)) as Result

interface ShownUser { id: string, email: string, role: string, disabled: boolean }
type WithUser = { user: ShownUser, password: string | null, endedSessions: number }

t.test('14.4 every command has help, and docs/operations/commands.md describes it with its options and its JSON', async (t) => {
  const document = readFileSync(join(import.meta.dirname, '../../../docs/operations/commands.md'), 'utf8')
  const all = describeAll(commands)
  for (const [name, { summary, load }] of Object.entries(commands)) {
    const { default: command } = await load() as { default: Command }
    t.match(all, new RegExp(`^  ${name} +${summary.slice(0, 10)}`, 'm'), name)
    const help = describeCommand(name, summary, command)
    t.ok(help.startsWith(`Usage: npm start -- ${[name, ...command.arguments ?? []].join(' ')}`), help)
    const [, section = ''] = new RegExp(
      `^### \`${[name, ...command.arguments ?? []].join(' ')}\`\n([^]*?)(?=^##|(?![^]))`, 'm'
    ).exec(document) ?? []
    t.not(section, '', `${name} has a section`)
    for (const option of Object.keys(command.options)) {
      t.match(help, `--${option}`, `${name} --${option}`)
      t.match(section, `--${option}`, `${name} --${option} in the document`)
    }
    if (command.json !== undefined) {
      t.ok(section.replaceAll(/\s+/g, ' ').includes(command.json.replaceAll(/\s+/g, ' ')), `${name}: ${command.json}`)
    }
  }
  t.same(
    [...document.matchAll(/^### `([a-z -]+?)(?: [A-Z]+)*`$/gm)].map(([, name]) => name).sort(),
    Object.keys(commands).sort()
  )
  const group = describeGroup(commands, 'users')
  t.equal(group.match(/^ {2}users /gm)?.length, 13)
  t.notMatch(group, 'sessions list')
})

t.test('14.4 a table shows control characters and invisible ones as a replacement', async (t) => {
  t.equal(
    formatTable(['A', 'B'], [['\u001B[31mx\u009B', null], ['y\u202E', true]]),
    'A        B\n\uFFFD[31mx\uFFFD  -\ny\uFFFD       yes'
  )
})

t.test('14.4 commands for accounts have the effects of the API', async (t) => {
  const sql = postgres(DATABASE_URL, { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end())
  const node = await startNode(t, { cwd, settings })
  const status = async (headers: Record<string, string>) => (await node.fetch('/api/protected', { headers })).status
  const login = async (email: string, password: string | null) => node.login({ email, password: `${password}` })
  const until401 = async (headers: Record<string, string>) => { while (await status(headers) !== 401); }

  await t.test('14.4 users create creates a user with a random password, who can log in', async (t) => {
    const { user, password } = await json<WithUser>('users create', { email: 'ada@example.com', name: 'Ada' })
    t.match(user, { email: 'ada@example.com', role: 'user', disabled: false })
    t.equal(await status((await login(user.email, password)).headers), 200)
    t.match(
      (await run('users create', { email: 'bob@example.com', name: 'Bob', role: 'admin' })).text,
      /^User bob@example\.com was created with the id \S{36}, password \S{20} \(not shown again\)$/
    )
    await t.rejects(
      run('users create', { email: 'ADA@example.com', name: 'Ada' }), { message: 'This email address is already taken' }
    )
    await t.rejects(run('users create', { email: 'x' }), { message: '--name is required.' })
    await t.rejects(
      run('users create', { email: 'c@example.com', name: 'C', role: 'king' }), { message: /^role must be / }
    )
    await t.rejects(run('users create', { email: 'c@example.com', name: 'C', invite: true }), {
      message: 'No mails can be sent: set SMTP_URL and MAIL_FROM, or leave out --invite.',
    })
    await t.rejects(run('users show', {}, 'c@example.com'), { message: 'There is no user c@example.com.' })
  })

  await t.test('14.4 users list shows pages, searches and sorts', async (t) => {
    type Page = { users: ShownUser[], next: string | null }
    const first = await json<Page>('users list', { limit: '2' })
    t.same(first.users.map(({ email }) => email), ['bob@example.com', 'ada@example.com'])
    const second = await json<Page>('users list', { limit: '2', after: first.next! })
    t.same([second.users.map(({ email }) => email), second.next], [[admin.email], null])
    t.match((await run('users list', { limit: '2' })).text, `\n\nThere are more: add --after ${first.next}`)
    t.same((await json<Page>('users list', { search: 'bo', role: 'admin' })).users.length, 1)
    t.same(
      (await json<Page>('users list', { sort: 'name' })).users.map(({ email }) => email),
      ['ada@example.com', admin.email, 'bob@example.com']
    )
    await t.rejects(run('users list', { limit: 'x' }), { message: /^limit must be/ })
    await t.rejects(run('users list', { after: 'x' }), { message: /^after must be/ })
  })

  await t.test('14.4 disable ends the sessions and prevents logins, enable permits them again', async (t) => {
    const { password } = await json<WithUser>('users reset-password', {}, 'ada@example.com')
    const { headers } = await login('ada@example.com', password)
    t.equal((await run('users disable', {}, 'ADA@example.com')).text, 'ada@example.com is disabled.')
    await until401(headers)
    await t.rejects(login('ada@example.com', password), { message: 'login: 401' })
    t.equal((await run('users enable', {}, 'ada@example.com')).text, 'ada@example.com is enabled.')
    t.equal(await status((await login('ada@example.com', password)).headers), 200)
  })

  await t.test('14.4 promote and demote change the role, and a demotion ends the sessions', async (t) => {
    const { user, password } = await json<WithUser>('users reset-password', {}, 'ada@example.com')
    t.match(await json('users promote', { yes: true }, user.id), { user: { role: 'admin' } })
    const { headers } = await login('ada@example.com', password)
    t.match(await json('users demote', {}, 'ada@example.com'), { user: { role: 'user' } })
    await until401(headers)
  })

  await t.test('11.3 promote asks if the address is not verified, and without a terminal it needs --yes', async (t) => {
    await t.rejects(run('users promote', {}, 'ada@example.com'), {
      message: 'The address ada@example.com is not verified, so the user may be somebody else who claims it, and there is no terminal to confirm it: ' +
        'repeat the command with --yes.',
    })
    t.match(await json('users show', {}, 'ada@example.com'), { user: { role: 'user' } })
    await sql`update usher.users set email_verified = true where email = 'ada@example.com'`
    t.match(await json('users promote', {}, 'ada@example.com'), { user: { role: 'admin', emailVerified: true } })
    t.equal((await run('users promote', {}, 'ada@example.com')).text, 'ada@example.com is an admin.')
    await run('users demote', {}, 'ada@example.com')
  })

  await t.test('11.3 after reset-password, promote, disable and sessions end --user, no link from before works', async (t) => {
    const { user } = await json<WithUser>('users create', { email: 'owen@example.com', name: 'Owen' })
    for (const command of ['users reset-password', 'users promote', 'users disable', 'sessions end'] as const) {
      for (const table of ['undo_links', 'password_links', 'verification_links']) {
        const values = {
          hash: Buffer.from(`${command} ${table}`), user_id: user.id, expires_at: new Date(Date.now() + 86_400_000),
        }
        const more = table === 'password_links'
          ? {}
          : { email: 'thief@example.com', ...table === 'undo_links' && { email_verified: true } }
        await sql`insert into usher.${sql(table)} ${sql({ ...values, ...more })}`
      }
      await (command === 'sessions end' ? run(command, { user: user.id }) : run(command, { yes: true }, user.id))
      for (const table of ['undo_links', 'password_links', 'verification_links']) {
        t.equal(
          (await sql`select 1 from usher.${sql(table)} where user_id = ${user.id}`).length, 0, `${command}: ${table}`
        )
      }
    }
    await run('users delete', { yes: true }, user.id)
  })

  await t.test('11.6 after ten wrong passwords and users reset-password, the new password works at once', async (t) => {
    const attempt = async (password: string) => (await node.fetch('/api/auth/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: 'ada@example.com', password }),
    })).status
    while (await attempt('a wrong one') !== 429);
    const { password } = await json<WithUser>('users reset-password', {}, 'ada@example.com')
    t.equal(await attempt(password!), 200)
  })

  await t.test('14.4 reset-password replaces the password, ends all sessions, and forgets failed logins', async (t) => {
    const before = await json<WithUser>('users reset-password', {}, 'ada@example.com')
    const { headers } = await login('ada@example.com', before.password)
    const after = await json<WithUser>('users reset-password', {}, 'ada@example.com')
    t.equal(after.endedSessions, 1)
    await until401(headers)
    await t.rejects(login('ada@example.com', before.password), { message: 'login: 401' })
    t.equal(await status((await login('ada@example.com', after.password)).headers), 200)
    await t.rejects(
      run('users reset-password', { mail: true }, 'ada@example.com'), { message: /^No mails can be sent/ }
    )
  })

  await t.test('16.4 reset-second-factor helps who has lost the device, and removes passkeys only if asked', async (t) => {
    const { user, password } = await json<WithUser>('users create', { email: 'lost@example.com', name: 'Lost' })
    t.equal(
      (await run('users reset-second-factor', {}, user.id)).text,
      'lost@example.com has no authenticator app: nothing was changed.'
    )
    const { headers } = await login('lost@example.com', password)
    await sql`insert into usher.totp (user_id, secret, confirmed_at) values (${user.id}, 'x', now())`
    await sql`insert into usher.passkeys (id, user_id, credential_id, public_key, counter, transports, name, backed_up)
      values (gen_random_uuid(), ${user.id}, 'x', 'x', 0, '{}', 'a key', false)`
    await t.rejects(login('lost@example.com', password), { message: 'login: 401' })
    t.equal(
      (await run('users reset-second-factor', {}, 'LOST@example.com')).text,
      'Removed the authenticator app of lost@example.com. 1 session ended.'
    )
    await until401(headers)
    t.equal(await status((await login('lost@example.com', password)).headers), 200)
    t.match(await json('users reset-second-factor', { passkeys: true }, user.id), {
      user: { id: user.id }, totp: false, passkeys: 1, endedSessions: 1,
    })
    const actions =
      await sql`select action, user_agent from usher.audit where user_id = ${user.id} and action in ('totp.remove', 'passkey.remove') order by id`
    t.same(
      actions.map(({ action, user_agent: agent }) => [action, agent]),
      [['totp.remove', 'usher command line'], ['passkey.remove', 'usher command line']]
    )
    await t.rejects(
      run('users reset-second-factor', {}, 'nobody@example.com'), { message: 'There is no user nobody@example.com.' }
    )
    await run('users delete', { yes: true }, user.id)
  })

  await t.test('17.1 an operator creates a service user and its key, and lists and deletes keys', async (t) => {
    const { user, password } = await json<WithUser>(
      'users create', { email: 'ci@example.com', name: 'CI', service: true }
    )
    t.strictSame([password, user], [null, { ...user, kind: 'service', role: 'user' }])
    await t.rejects(
      run('users create', { email: 'x@example.com', name: 'X', service: true, invite: true }),
      { message: 'Only one of --invite, --password-stdin and --service is possible.' }
    )
    await t.rejects(run('users reset-password', {}, user.id), { message: /A service user has no password/ })
    await t.rejects(run('api-keys create', {}, user.id), { message: '--name is required.' })
    const invalid = run('api-keys create', { name: 'A', actions: 'posts:fly' }, user.id)
    await t.rejects(invalid, { message: /actions has "posts:fly", which is no action/ })
    type Key = { id: string, userId: string, key: string, actions: string[], expiresAt: string }
    const options = { name: 'GitHub', actions: 'posts:create, posts:update', expires: '2999-01-01T00:00:00Z' }
    const { key, ...created } = await json<Key>('api-keys create', options, 'CI@example.com')
    t.match(created, {
      userId: user.id, actions: ['posts:create', 'posts:update'], expiresAt: '2999-01-01T00:00:00.000Z',
    })
    t.match((await run('api-keys create', { name: 'B' }, user.id)).text, /\nusher_[0-9A-Za-z]{49}$/)
    const { apiKeys } = await json<{ apiKeys: object[] }>('api-keys list', { user: 'ci@example.com' })
    t.strictSame(apiKeys.at(-1), created)
    t.equal(await status({ authorization: `Bearer ${key}` }), 200)
    t.match((await run('api-keys list')).text, new RegExp(`^${created.id} +ci@example.com +GitHub `, 'm'))
    t.strictSame(await json('api-keys delete', {}, created.id), { id: created.id, deleted: true })
    await until401({ authorization: `Bearer ${key}` })
    await t.rejects(run('api-keys delete', {}, created.id), { message: `There is no API key ${created.id}.` })
    await run('sessions end', { user: user.id })
    t.strictSame(await json('api-keys list', { user: user.id }), { apiKeys: [] })
    await run('users delete', { yes: true }, user.id)
  })

  await t.test('13.1 13.2 commands for uploads have the effects of the API', async (t) => {
    const { user, password } = await json<WithUser>('users create', { email: 'files@example.com', name: 'Files' })
    const { headers: { authorization } } = await login(user.email, password)
    const send = (path: string, method = 'GET', body?: FormData | string) => node.fetch(path, {
      method,
      headers: { authorization: authorization!, ...typeof body === 'string' && { 'content-type': 'application/json' } },
      ...body !== undefined && { body },
    })
    const store = async (name: string, visibility: string) => {
      const form = new FormData()
      form.append('description', 'What it is')
      form.append('visibility', visibility)
      form.append('file', new Blob([`the bytes of ${name}`]), name)
      return await (await send('/api/uploads', 'POST', form)).json() as { id: string }
    }
    const first = await store('first.txt', 'private')
    const second = await store('second.txt', 'public')
    type List = { uploads: { id: string, userId: string }[], next: string | null }
    const page = await json<List>('uploads list', { user: 'FILES@example.com', limit: '1' })
    t.same(page.uploads.map(({ id }) => id), [second.id])
    const rest = await json<List>('uploads list', { user: user.id, after: page.next! })
    const { etag: _, ...record } = await (await send(`/api/uploads/${first.id}/record`)).json() as { etag?: string }
    t.strictSame(rest, { uploads: [record], next: null }, 'as the API shows it')
    t.match((await json<List>('uploads list')).uploads.map(({ id }) => id), [second.id, first.id])
    t.match(
      (await run('uploads list', { limit: '1' })).text,
      new RegExp(`^${second.id} +files@example\\.com +second\\.txt +23 +public [^]+\nThere are more: add --after ${page.next}`, 'm')
    )
    await t.rejects(run('uploads list', { limit: '0' }), { message: /^limit must be/ })
    await t.rejects(run('uploads list', { after: 'x' }), { message: /^after must be/ })
    await t.rejects(run('uploads list', { user: 'nobody' }), { message: 'There is no user nobody.' })

    const created = await send(`/api/uploads/${first.id}/links`, 'POST', JSON.stringify({ seconds: 600, name: 'Grace' }))
    const { url, ...link } = await created.json() as { id: string, url: string }
    t.equal((await node.fetch(url)).status, 200)
    t.strictSame(await json('uploads show', {}, first.id.toUpperCase()), { upload: record, links: 1 })
    t.strictSame(await json('uploads links', {}, first.id), { links: [link] })
    t.match((await run('uploads links', {}, first.id)).text, new RegExp(`^${link.id} +Grace +files@example\\.com `, 'm'))
    t.strictSame(
      await json('uploads revoke', {}, link.id.toUpperCase()), { id: link.id, uploadId: first.id, revoked: true }
    )
    t.not((await node.fetch(url)).status, 200, 'the link works no more')
    for (const id of [link.id, 'x', '\0']) {
      await t.rejects(run('uploads revoke', {}, id), { message: `There is no link ${id}.` })
    }

    await t.rejects(run('uploads delete', {}, first.id), { message: /repeat the command with --yes\.$/ })
    t.strictSame(await json('uploads delete', { yes: true }, first.id), {
      id: first.id, userId: user.id, filename: 'first.txt', deleted: true,
    })
    t.equal((await send(`/api/uploads/${first.id}`)).status, 404)
    for (const command of ['uploads show', 'uploads links', 'uploads delete']) {
      for (const id of [first.id, 'x', '\0']) {
        await t.rejects(run(command, { yes: true }, id), { message: `There is no upload ${id}.` })
      }
    }
    const [usage] = await sql`select files::int from usher.upload_usage where user_id = ${user.id}`
    t.equal(usage!['files'], 1, 'its space is free')
    const entries = await sql`
      select action, actor_id, user_agent from usher.audit where user_id = ${user.id} and action like 'upload%' order by id`
    t.same(entries.map((entry) => Object.values(entry)), [
      ['upload-link.create', user.id, 'node'],
      ['upload-link.revoke', null, 'usher command line'],
      ['upload.delete', null, 'usher command line'],
    ])
    await run('users delete', { yes: true }, user.id)
  })

  await t.test('14.4 sessions list shows those of a user or of all', async (t) => {
    const { sub, sid } = JSON.parse(
      Buffer.from((await login(admin.email, admin.password)).token.split('.')[1]!, 'base64url').toString()
    )
    type List = { sessions: { id: string, userId: string, userAgent: string }[] }
    t.match(await json<List>('sessions list', { user: admin.email }), {
      sessions: [{ id: sid, userId: sub, userAgent: 'node' }],
    })
    t.ok((await json<List>('sessions list')).sessions.length > 1)
    t.match((await run('sessions list')).text, new RegExp(`^${sid} +${admin.email} `, 'm'), 'people get the address')
    t.match(await json('users show', {}, sub), { user: { email: admin.email }, hasPassword: true, sessions: 1 })
  })

  await t.test('14.4 users delete asks for confirmation, and the last admin stays', async (t) => {
    await t.rejects(run('users delete', {}, 'bob@example.com'), { message: /repeat the command with --yes\.$/ })
    t.match(await json('users delete', { yes: true }, 'bob@example.com'), { email: 'bob@example.com', deleted: true })
    for (const name of ['users delete', 'users demote', 'users disable']) {
      await t.rejects(run(name, { yes: true }, admin.email), {
        message: 'The last admin can be neither deleted nor demoted nor disabled',
      })
    }
  })

  await t.test('14.4 audit shows what the commands have done, by user and by action', async (t) => {
    type Page = { entries: { action: string, userAgent: string, actorId: null, userId: string }[], next: string | null }
    const { entries } = await json<Page>('audit', { user: 'ada@example.com', limit: '1000' })
    const ours = entries.filter(({ userAgent }) => userAgent === 'usher command line')
    t.same(ours.map(({ action }) => action).reverse(), [
      'user.create', 'password.reset', 'user.disable', 'user.enable', 'password.reset', 'user.role-change',
      'user.role-change', 'user.role-change', 'user.role-change', 'password.reset', 'password.reset', 'password.reset',
    ])
    for (const { actorId } of ours) t.equal(actorId, null)
    const deleted = await json<Page>('audit', { action: 'user.delete', limit: '1' })
    t.match(deleted.entries, [{ action: 'user.delete', userAgent: 'usher command line' }])
    t.match(
      (await run('audit', { action: 'user.create' })).text,
      / user\.create +ada@example\.com +- /,
      'people get the address'
    )
    t.match(
      (await run('audit', { action: 'user.delete' })).text,
      new RegExp(` user\\.delete +${deleted.entries[0]!.userId} `),
      'or the id of a deleted user'
    )
    await t.rejects(run('audit', { action: 'nothing' }), { message: /^action must be/ })
  })

  await t.test('14.4 status finds everything in order while a node runs', async (t) => {
    const { json: found, isFailure } = await run('status')
    t.equal(isFailure, false)
    const { checks } = found as { checks: { name: string, state: string, detail: string }[] }
    const states = Object.fromEntries(checks.map(({ name, state }) => [name, state]))
    const { settings: _, ...others } = states
    t.match(others, {
      database: 'ok',
      tables: 'ok',
      'signing keys': 'ok',
      nodes: 'ok',
      events: 'ok',
      backups: 'warning',
      notifications: 'skipped',
      uploads: 'ok',
      'mail server': 'skipped',
    })
    t.match(checks.find(({ name }) => name === 'nodes')!.detail, '1 process is connected')
  })
})

t.test('14.4 mails of commands are sent before they end, and status checks the mail server', async (t) => {
  const { url, token, of } = await startMailServer(t)
  Object.assign(env, { SMTP_URL: url, MAIL_FROM: 'usher@example.com', PUBLIC_URL: 'https://api.example.com' })
  t.teardown(() => { for (const name of ['SMTP_URL', 'MAIL_FROM', 'PUBLIC_URL']) env[name] = '' })
  const { user, password } = await json<WithUser>(
    'users create', { email: 'eve@example.com', name: 'Eve', invite: true }
  )
  t.equal(password, null)
  t.match(await token(user.email), /^[\w-]{43}$/)
  t.match(await json('users reset-password', { mail: true }, user.email), { password: null, mailed: true })
  t.match(await of(user.email, 2), [{}, { text: /https:\/\/api\.example\.com\/set-password#token=/ }])
  await run('users reset-password', {}, user.email)
  t.match((await of(user.email, 3)).at(-1), { text: /password/ })
  const { checks } = await json<{ checks: { name: string, state: string }[] }>('status')
  t.equal(checks.find(({ name }) => name === 'mail server')!.state, 'ok')
})

/** Returns the states of the checks by name, and the exit code of `status`. */
async function statesOf (): Promise<Record<string, string | boolean>> {
  const { json: found, isFailure } = await run('status')
  const { checks } = found as { checks: { name: string, state: string }[] }
  return { ...Object.fromEntries(checks.map(({ name, state }) => [name, state])), isFailure: isFailure === true }
}

t.test('14.4 status fails without a node, with pending migrations, and if notifications cannot arrive', async (t) => {
  const sql = postgres(DATABASE_URL, { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end())
  t.match(await statesOf(), { database: 'ok', tables: 'ok', nodes: 'failed', isFailure: true })

  env['NOTIFICATIONS_URL'] = 'postgres://u:secret@127.0.0.1:1/d'
  t.teardown(() => { env['NOTIFICATIONS_URL'] = '' })
  t.match(await statesOf(), { notifications: 'failed', isFailure: true })
  t.notMatch((await run('status')).text, 'secret')
  env['NOTIFICATIONS_URL'] = DATABASE_URL
  t.match(await statesOf(), { notifications: 'ok' })

  const all = await sql`delete from usher.migrations returning *`
  t.match(await statesOf(), { tables: 'failed', isFailure: true })
  await sql`insert into usher.migrations ${sql(all)}`
  t.match(await statesOf(), { tables: 'ok' })
})

nightly('13.3 status, a start and commands say whether the S3 can be used, by the names of settings, and write nothing', async (t) => {
  const store = await startFakeS3(t)
  const { endpoint, bucket, accessKeyId, secretAccessKey } = store.options
  const right = {
    PORT: '0',
    S3_ENDPOINT: endpoint,
    S3_BUCKET: bucket,
    S3_ACCESS_KEY_ID: accessKeyId,
    S3_SECRET_ACCESS_KEY: secretAccessKey,
    S3_PREFIX: 'usher',
  }
  t.teardown(() => { for (const name of Object.keys(right)) env[name] = '' })
  const detailOf = async () => {
    const { checks } = await json<{ checks: { name: string, state: string, detail: string }[] }>('status')
    const { state, detail } = checks.find(({ name }) => name === 'uploads')!
    return `${state}: ${detail}`
  }
  t.match(await detailOf(), /^ok: \S+uploads can be used$/)
  Object.assign(env, right)
  t.match(await detailOf(), /^ok: s3:\/\/photos\/usher\/ answers in \d+ ms$/)
  await readStartSettings(createShell(env, cwd))
  t.same(store.requests.filter((request) => !request.startsWith('GET ')), [])

  const wrong: [Record<string, string>, RegExp][] = [
    [{ S3_BUCKET: 'nowhere' }, /^S3_BUCKET nowhere does not exist at 127/],
    [{ S3_ACCESS_KEY_ID: 'NOBODY' }, /^S3_ACCESS_KEY_ID is not known at 127/],
    [{ S3_SECRET_ACCESS_KEY: 'hidden' }, /^S3_SECRET_ACCESS_KEY is not the secret of S3_ACCESS_KEY_ID at 127/],
    [{ S3_ENDPOINT: 'http://127.0.0.1:9' }, /^S3_ENDPOINT 127.0.0.1:9 cannot be reached \(ECONNREFUSED\)/],
  ]
  for (const [setting, sentence] of wrong.slice(0, 3)) {
    Object.assign(env, right, setting)
    const said = await detailOf()
    t.match(said.replace(/^failed: /, ''), sentence)
    t.notMatch(said, 'hidden')
    await t.rejects(readStartSettings(createShell(env, cwd)), { message: sentence })
    await t.rejects(run('backup', {}, 'none.tar.gz'), { message: sentence })
    await t.rejects(run('uploads clean', { yes: true }), { message: sentence })
  }
  Object.assign(env, right, wrong[3]![0])
  t.match((await detailOf()).replace(/^failed: /, ''), wrong[3]![1])
  // Whoever may list objects and not get them has a key that does not suffice.
  Object.assign(env, right)
  store.misbehave(({ method, key }) => method === 'GET' && key !== '' ? { status: 403, code: 'AccessDenied' } : undefined)
  t.match(await detailOf(), /^failed: S3_ACCESS_KEY_ID may not use the bucket photos \(AccessDenied\): allow it to get, put/)
  t.same([...store.objects.keys()], [])

  for (const name of Object.keys(right)) env[name] = ''
  const { DATA_DIR } = env
  env['DATA_DIR'] = t.testdir({ uploads: 'a file' })
  t.match(await detailOf(), /^failed: DATA_DIR cannot be used, check that it is a writable folder/)
  env['DATA_DIR'] = DATA_DIR
})

nightly('13.3 commands with --uploads-dir and an S3 read both, and name where uploads are', async (t) => {
  const store = await startFakeS3(t)
  const { endpoint, bucket, accessKeyId, secretAccessKey } = store.options
  const place = t.testdir({ files: { one: 'in the folder' } })
  const parsed = parseSettings({
    S3_ENDPOINT: endpoint, S3_BUCKET: bucket, S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey,
  })
  store.objects.set('files/two', { bytes: Buffer.from('in the bucket'), modified: Date.now() })
  const backend = await openStorage(parsed, place)
  t.teardown(() => backend.close())
  t.equal(backend.root, 's3://photos/')
  t.equal(await backend.count(), 2)
  t.equal(await text((await backend.read('one'))!), 'in the folder')
  t.equal(await text((await backend.read('two'))!), 'in the bucket')
  store.misbehave(() => ({ status: 403, code: 'AccessDenied' }))
  const refused: Error = await backend.write('three', Readable.from([Buffer.from('x')]))
    .then(() => backend.publish('three')).then(() => new Error('none'), (error) => error)
  t.match(
    explainFailure(refused, backend),
    /^The uploads cannot be written to s3:\/\/photos\/ \(The store has answered PUT with 403 AccessDenied: no\): check the store\.$/
  )
  t.equal(explainFailure(new Error('another'), backend), undefined)
})

nightly('14.4 status counts the processes that listen, not connections, which a pooler keeps', async (t) => {
  const detailOf = async () => {
    const { checks } = await json<{ checks: { name: string, detail: string }[] }>('status')
    return checks.find(({ name }) => name === 'nodes')!.detail
  }
  // Behind a pooler, the heartbeats of one node are the last statements of several connections, which outlive the node.
  const kept = postgres(DATABASE_URL, { max: 1, onnotice: () => {} })
  t.teardown(() => kept.end())
  await kept.unsafe(HEARTBEAT)
  t.equal(await detailOf(), 'no node is connected')
  // The limits are those of the node, which has counted failed logins above. With others, the count means something
  // else.
  const options = {
    databaseUrl: DATABASE_URL, notificationsUrl: DATABASE_URL, schema: 'usher', secret: SECRET, admin, throttle: {},
  }
  const { app } = await createUsher(t, options)
  t.equal(await detailOf(), '1 process is connected', 'one whose heartbeats use two connections')
  const other = await createUsher(t, options)
  t.equal(await detailOf(), '2 processes are connected')
  await Promise.all([app.close(), other.app.close()])
  await until('both are gone', async () => await detailOf() === 'no node is connected', 50)
})

nightly('14.4 status does not fail after a rotation with a new SECRET, and fails with a wrong one', async (t) => {
  const before = env['SECRET']
  t.teardown(() => { env['SECRET'] = before })
  env['SECRET'] = 'another secret of many words'
  t.match(await statesOf(), { 'signing keys': 'failed' })
  await run('keys rotate')
  t.match(await statesOf(), { 'signing keys': 'ok' })
  t.match((await run('status')).text, /signing keys +ok +2, of which 1 will sign later, and 1 have another SECRET/)
  env['SECRET'] = before
  t.match(await statesOf(), { 'signing keys': 'failed' })
  await run('keys rotate', { now: true })
})

nightly('16.4 keys rotate encrypts the secrets of authenticator apps with another SECRET, and says which it cannot', async (t) => {
  const sql = postgres(DATABASE_URL, { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end())
  const { user } = await json<WithUser>('users create', { email: 'app@example.com', name: 'App' })
  const former = 'the secret from before this one'
  await sql`insert into usher.totp (user_id, secret, confirmed_at) values (${user.id}, ${sealTotp({ secret: former }, user.id, 'ABCDEFGH')}, now())`
  t.match(
    (await run('keys rotate')).text,
    /^Key .*\nSecrets of authenticator apps that cannot be decrypted: 1\. Set FORMER_SECRET /
  )
  env['FORMER_SECRET'] = former
  t.teardown(() => { delete env['FORMER_SECRET'] })
  t.match(
    (await run('keys rotate')).text, /^Key .*\nSecrets of authenticator apps that are now encrypted with SECRET: 1\.$/
  )
  t.match(await json('keys rotate'), { authenticatorApps: { encrypted: 0, unreadable: 0 } })
  const [{ secret }] = await sql<[{ secret: string }]>`select secret from usher.totp where user_id = ${user.id}`
  t.equal(openTotp({ secret: SECRET }, user.id, secret), 'ABCDEFGH')
  await run('users delete', { yes: true }, user.id)
})

t.test('14.4 events list shows what has failed and what waits, and events retry delivers it again', async (t) => {
  const sql = postgres(DATABASE_URL, { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end())
  const ids = ['0190a0b0-0000-7000-8000-000000000001', '0190a0b0-0000-7000-8000-000000000002'] as const
  for (const id of ids) {
    await sql`insert into usher.failed_deliveries (id, consumer, type, subject, data, created_at, attempts, error)
      values (${id}, 'webhook node', 'user.created', ${id}, '{}', now(), 9, 'status 500')`
  }
  await sql`insert into usher.outbox (consumer, type, subject, data, attempts, due_at) values ('webhook other', 'user.created', ${ids[0]}, '{}', 3, now() + interval '1 hour')`
  type List = { failed: { id: string }[], waiting: { consumer: string, count: number, retrying: number }[] }
  const before = await json<List>('events list')
  t.same(before.failed.map(({ id }) => id), ids)
  t.match(before.waiting, [{ consumer: 'webhook other', count: 1, retrying: 1 }])
  t.match((await run('events list')).text, /^ID +CONSUMER[^]+status 500[^]+WAITING FOR/)
  t.equal((await statesOf()).events, 'warning')

  await t.rejects(run('events retry'), { message: 'Exactly one of --id and --all is required.' })
  await t.rejects(run('events retry', { id: 'x' }), { message: 'There is no failed event x.' })
  t.same(await json('events retry', { id: ids[0] }), { retried: 1, attempted: 0 })
  t.same(await json('events retry', { all: true }), { retried: 1, attempted: 1 })
  const after = await json<List>('events list')
  t.same(after.failed, [])
  t.match(after.waiting, [{ consumer: 'webhook node', count: 2, retrying: 0 }, { consumer: 'webhook other', count: 1 }])
  t.match(await sql`select 1 from usher.outbox where due_at > now()`, [], 'all are due')
})
