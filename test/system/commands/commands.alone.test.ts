import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdir, readdir, readFile, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough, type Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import t from 'tap'
import { confirm } from '../../../node/commands/confirm.ts'
import { main } from '../../../node/commands/index.ts'
import { failStart, runCommand, spawnCommand, surroundings } from '../../helpers/command.ts'
import { createDatabase } from '../../helpers/database.ts'
import { nightly } from '../../helpers/nightly.ts'
import { nodeCommand, startNode } from '../../helpers/node.ts'

const server = fileURLToPath(new URL('../../../node/server.ts', import.meta.url))
const admin = { email: 'root@example.com', password: 'horse battery staple' }

const DATABASE_URL = await createDatabase(t, { empty: true })
const { pathname, port } = new URL(DATABASE_URL)

/** The working directory of commands and nodes. */
const cwd = t.testdir()

/** Runs `usher` with arguments in this process. Resolves to its output and its exit code. */
async function usher (args: string, { input = '', settings = {}, cwd: where = cwd }: {
  input?: string, settings?: Record<string, string>, cwd?: string
} = {}) {
  return runCommand(args.split(' ').filter(Boolean), { DATABASE_URL, ...settings }, where, input)
}

t.test('--help lists commands and options, and wrong usage is reported in a sentence', async (t) => {
  const { stdout, code } = await usher('--help')
  t.equal(code, 0)
  for (const command of ['start', 'migrate', 'admin create', 'keys rotate', 'sessions end', 'uploads clean']) {
    t.match(stdout, new RegExp(`^  ${command} `, 'm'))
  }
  for (const [command, usage] of [['start', 'start'], ['sessions end', 'sessions end [options]']] as const) {
    const help = await usher(`${command} --help`)
    t.equal(help.code, 0)
    t.ok(help.stdout.startsWith(`Usage: npm start -- ${usage}\n\n`), help.stdout)
  }
  for (const words of ['', 'users', 'sessions end']) {
    const [word, option] = await Promise.all([usher(`help ${words}`), usher(`${words} --help`)])
    t.strictSame(word, option, words)
    t.equal(word.code, 0)
  }
  const wrong: [string, number, string][] = [
    ['nothing', 2, 'There is no command nothing.\nSee npm start -- --help.\n'],
    ['constructor', 2, 'There is no command constructor.\nSee npm start -- --help.\n'],
    ['users', 2, 'users needs a command: list, show, create, promote, demote, set-role, disable, enable, reset-password, reset-second-factor, delete, import, export.\nSee npm start -- users --help.\n'],
    ['users nothing', 2, 'There is no command users nothing.\nSee npm start -- users --help.\n'],
    ['users show', 2, 'users show needs USER.\nSee npm start -- users show --help.\n'],
    ['migrate --force', 2, "Unknown option '--force'.\nSee npm start -- migrate --help.\n"],
    ['sessions end --all please', 2, "Unexpected argument 'please'.\nSee npm start -- sessions end --help.\n"],
    ['sessions end', 2, 'Exactly one of --user, --id and --all is required.\n'],
    ['sessions end --user nobody@example.com', 1, 'There is no user nobody@example.com.\n'],
    ['admin create', 2, '--email is required.\n'],
    ['admin create --email x', 2, 'email must be an email address\n'],
    ['users list --role boss', 2, 'role must be one of admin, user\n'],
    ['audit --limit 0', 2, 'limit must be between 1 and 1000\n'],
    ['events retry', 2, 'Exactly one of --id and --all is required.\n'],
  ]
  await Promise.all(wrong.map(async ([args, status, said]) => {
    const { stdout, stderr, code } = await usher(args)
    t.same([code, stderr, stdout], [status, said, ''], args)
  }))
  const { version } = JSON.parse(await readFile(new URL('../../../package.json', import.meta.url), 'utf8'))
  t.same(await usher('--version'), { stdout: `${version}\n`, stderr: '', code: 0 })
  t.match(
    (await usher('sessions --help')).stdout, /^Usage: npm start -- sessions <command> \[options\]\n\n {2}sessions list /
  )
  const unreachable = await usher(
    'migrate', { settings: { DATABASE_URL: 'postgres://127.0.0.1:1/none', DATABASE_WAIT_SECONDS: '0' } }
  )
  t.same([unreachable.code, unreachable.stderr], [
    1, 'DATABASE_URL: "none" on 127.0.0.1:1 cannot be reached (ECONNREFUSED).\n',
  ])
})

t.test('usher migrate updates a database, and other commands work while a node runs', async (t) => {
  t.same(await usher('migrate'), {
    stdout:
      `The database is up to date: database "${pathname.slice(1)}" on 127.0.0.1:${port}, uploads in ${cwd}/data\n`,
    stderr: '',
    code: 0,
  })
  const node = await startNode(
    t, { cwd, settings: { DATABASE_URL, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password } }
  )
  const status = async (headers: Record<string, string>) => (await node.fetch('/api/protected', { headers })).status
  const until401 = async (headers: Record<string, string>) => { while (await status(headers) !== 401); }

  t.test('admin create creates an admin with a given or a random password', async (t) => {
    const made = await usher('admin create --email second@example.com')
    t.equal(made.code, 0)
    const [, password = ''] =
      /^Admin second@example.com was created in database "[^"]+" on [^@]+, password (\S{20}) \(not shown again\)\n$/.exec(made.stdout)!
    t.equal(await status((await node.login({ email: 'second@example.com', password })).headers), 200)

    t.match(
      await usher(
        'admin create --email third@example.com --name Third --password-stdin', { input: 'a long passphrase\n' }
      ),
      { stdout: /^Admin third@example\.com was created in database .+\.\n$/, stderr: '', code: 0 }
    )
    const { headers } = await node.login({ email: 'third@example.com', password: 'a long passphrase' })
    const { user } = await (await node.fetch('/api/protected', { headers })).json() as { user: object }
    t.match(user, { name: 'Third', role: 'admin' })

    t.same(await usher('admin create --email THIRD@example.com'), {
      stdout: '', stderr: 'THIRD@example.com is taken: give that user the role admin instead.\n', code: 1,
    })
    t.same(await usher('admin create --email fourth@example.com --password-stdin', { input: 'password1' }), {
      stdout: '', stderr: 'password is too common\n', code: 2,
    })
  })

  t.test('sessions end ends one session, those of a user or all, and the node rejects their tokens', async (t) => {
    const [first, second, third] = [await node.login(admin), await node.login(admin), await node.login(admin)]
    const other = await node.login({ email: 'third@example.com', password: 'a long passphrase' })
    const { sid, sub } = JSON.parse(Buffer.from(first.token.split('.')[1]!, 'base64url').toString())
    t.same(await usher(`sessions end --id ${sid}`), { stdout: '1 session ended.\n', stderr: '', code: 0 })
    await until401(first.headers)
    t.equal(await status(second.headers), 200)
    t.match(await usher(`sessions end --id ${sid}`), { stdout: '0 sessions ended.\n', code: 0 })

    t.match(await usher(`sessions end --user ${admin.email.toUpperCase()}`), { stdout: '2 sessions ended.\n', code: 0 })
    await until401(second.headers)
    await until401(third.headers)
    t.equal(await status(other.headers), 200)
    t.match(await usher(`sessions end --user ${sub}`), { stdout: '0 sessions ended.\n', code: 0 })

    const again = await node.login(admin)
    t.match(await usher('sessions end --all'), { stdout: /^\d+ sessions ended\.\n$/, code: 0 })
    await until401(again.headers)
    await until401(other.headers)
  })

  t.test('keys rotate adds a key that the node publishes at once, and existing tokens remain valid', async (t) => {
    const { headers } = await node.login(admin)
    const { stdout, code } = await usher('keys rotate')
    t.equal(code, 0)
    const [, id = ''] = /^Key (\S+) signs in 5 minutes\.\n$/.exec(stdout)!
    const kids = async () =>
      (await (await node.fetch('/.well-known/jwks.json')).json() as { keys: { kid: string }[] }).keys
        .map(({ kid }) => kid)
    while (!(await kids()).includes(id));
    t.equal((await kids()).length, 2)
    t.equal(await status(headers), 200)
  })

  t.test('keys rotate --now revokes all other keys, and sessions can be refreshed', async (t) => {
    const { headers, cookie } = await node.login(admin)
    const { stdout, code } = await usher('keys rotate --now')
    t.equal(code, 0)
    t.match(stdout, /^Key \S+ signs from now on\. All others are revoked\.\n$/)
    await until401(headers)
    const refreshed = await node.fetch('/api/auth/refresh', { method: 'POST', headers: { cookie } })
    t.equal(refreshed.status, 200)
    t.equal(await status({ authorization: `Bearer ${(await refreshed.json() as { token: string }).token}` }), 200)
  })

  t.test('the account log records these commands', async (t) => {
    const { headers } = await node.login(admin)
    const entries = await (await node.fetch('/api/audit?limit=1000', { headers })).json() as {
      action: string, userAgent: string, actorId: null
    }[]
    const ours = entries.filter(({ userAgent }) => userAgent === 'usher command line')
    t.same(
      ours.map(({ action }) => action).sort(),
      ['keys.rotate', 'keys.rotate', 'session.end', 'session.end', 'session.end', 'user.create', 'user.create']
    )
    for (const { actorId } of ours) t.equal(actorId, null)
  })
})

nightly('5.5 uploads clean removes files without a record after a confirmation', async (t) => {
  const cwd = t.testdir()
  const files = join(cwd, 'data/uploads/files')
  const old = async (name: string) => {
    await writeFile(join(files, name), 'ten octets')
    await utimes(join(files, name), 1, 1)
  }
  const settings = { DATABASE_URL: await createDatabase(t), ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password }
  const clean = (args = '') => usher(`uploads clean ${args}`, { cwd, settings })

  t.same(
    await clean(), { stdout: '', stderr: `There are no uploads in ${cwd}/data/uploads: check DATA_DIR.\n`, code: 1 }
  )
  const node = await startNode(t, { cwd, settings })
  t.same(await clean('--yes'), { stdout: `0 files without a record in ${files}, 0 bytes.\n`, stderr: '', code: 0 })
  const { headers: { authorization } } = await node.login(admin)
  const body = new FormData()
  body.set('description', 'Kept')
  body.set('file', new Blob(['kept']), 'kept.txt')
  const response = await node.fetch(
    '/api/uploads', { method: 'POST', headers: { authorization: authorization! }, body }
  )
  const { id } = await response.json() as { id: string }
  await utimes(join(files, id), 1, 1)
  const [one, other, young] = [randomUUID(), randomUUID(), randomUUID()] as const
  for (const name of [one, other, 'not-of-usher']) await old(name)
  await writeFile(join(files, young), 'young')

  const found = `2 files without a record in ${files}, 20 bytes.\n`
  t.same(await clean('--dry-run'), { stdout: found, stderr: '', code: 0 })
  t.same(await clean(), {
    stdout: '',
    stderr: `${found}This cannot be undone, and there is no terminal to confirm it: repeat the command with --yes.\n`,
    code: 1,
  })
  t.equal((await readdir(files)).length, 5)
  t.same(await clean('--yes'), { stdout: `${found}2 files removed.\n`, stderr: '', code: 0 })
  t.same((await readdir(files)).sort(), [id, 'not-of-usher', young].sort())
  t.equal((await node.fetch(`/api/uploads/${id}`)).status, 200)

  await mkdir(join(cwd, 'data/uploads/databases/another'))
  await old(one)
  const refused = await clean('--yes')
  t.match(
    refused, { stdout: '', code: 1, stderr: /^Other databases have used \S+uploads, .+ --ignore-other-databases if/ }
  )
  t.match(await clean('--yes --ignore-other-databases'), { stdout: /1 file removed\.\n$/, code: 0 })
})

t.test('14.4 config and status say what is wrong, exit with 1, and create nothing', async (t) => {
  const cwd = t.testdir({ '.env': 'SECRET=too short\nDATA_DIR=./kept\nDATABSE_URL=x\n' })
  const settings = {
    DATABASE_URL: 'postgres://usher:hidden@127.0.0.1:1/none',
    SMTP_URL: 'smtp://u:hidden@127.0.0.1:1',
    MAIL_FROM: 'a@example.com',
    PUBLIC_URL: 'https://example.com',
  }
  const config = await usher('config --json', { cwd, settings })
  t.equal(config.code, 1)
  const { settings: shown, errors, warnings } = JSON.parse(config.stdout)
  const valueOf = (name: string) => shown.find((setting: { name: string }) => setting.name === name)
  t.same(valueOf('DATABASE_URL'), {
    name: 'DATABASE_URL', value: 'postgres://usher:********@127.0.0.1:1/none', source: 'environment',
  })
  t.same(valueOf('DATA_DIR'), { name: 'DATA_DIR', value: './kept', source: '.env' })
  t.same(valueOf('SECRET'), { name: 'SECRET', value: '********', source: '.env' })
  t.same(valueOf('LOG_LEVEL'), { name: 'LOG_LEVEL', value: 'info', source: 'default' })
  t.same(errors, ['SECRET must be a secret of 16 to 1024 characters.'])
  t.same(warnings, [], 'DATABASE_URL is set, so DATABSE_URL is not taken for it')

  const { stdout: table } = await usher(
    'config', { cwd, settings: { ...settings, SIGN_UP: 'true', WEBHOOK_EVENTS: 'user.created,user.deleted' } }
  )
  for (const line of [
    'SIGN_UP +true +environment',
    'WEBHOOK_EVENTS +user.created, user.deleted +environment',
    'PASSWORD_URL +\\(not set\\) +default',
  ]) {
    t.match(table, new RegExp(`^${line}$`, 'm'))
  }

  const status = await usher('status --json', { cwd, settings })
  t.equal(status.code, 1)
  const { healthy, checks } = JSON.parse(status.stdout)
  t.equal(healthy, false)
  t.same(checks.filter(({ state }: { state: string }) => state === 'failed')
    .map(({ name, detail }: { name: string, detail: string }) => `${name}: ${detail}`), [
    'settings: SECRET must be a secret of 16 to 1024 characters.',
    'database: DATABASE_URL: "none" on 127.0.0.1:1 cannot be reached (ECONNREFUSED).',
    'mail server: 127.0.0.1:1 cannot be used (ESOCKET): check SMTP_URL',
  ])
  for (const { stdout, stderr } of [config, status]) t.notMatch(stdout + stderr, 'hidden')

  const wrong = {
    DATABASE_URL: `postgres://usher:wrong@127.0.0.1:${port}${pathname}`, SECRET: 'a secret of many words',
  }
  const [unknown, list] =
    await Promise.all([usher('status', { cwd, settings: wrong }), usher('users list', { cwd, settings: wrong })])
  for (const output of [unknown!.stdout, list!.stderr]) {
    t.match(output, /reports: password authentication failed for user "usher"/)
  }

  const stopped = await usher('status', { cwd, settings: { DATABASE_URL: '', SECRET: 'a secret of many words' } })
  t.match(stopped, { code: 1, stdout: /^database +failed +the embedded PostgreSQL does not run: start a node$/m })
  t.same(await readdir(cwd), ['.env'])
})

nightly('14.4 status counts the processes of other releases, which hold a lock of the same name', async (t) => {
  const url = await createDatabase(t)
  const nodes = async () => {
    const { stdout } = await usher('status --json', { settings: { DATABASE_URL: url } })
    const { checks } = JSON.parse(stdout) as { checks: { name: string, state: string, detail: string }[] }
    const { state, detail } = checks.find(({ name }) => name === 'nodes')!
    return [state, detail]
  }
  await usher('migrate', { settings: { DATABASE_URL: url } })
  t.strictSame(await nodes(), ['failed', 'no node is connected'])
  // As 0.1.0 does it: the name is an agreement between releases.
  const sql = postgres(url, { max: 1, onnotice () {} })
  await sql`select pg_advisory_lock_shared(hashtextextended('usher nodes of usher', 0))`
  t.strictSame(await nodes(), ['ok', '1 process is connected'])
  await sql.end()
})

t.test('a question on the terminal is confirmed by y or yes only', async (t) => {
  const answer = async (text: string) => {
    const [input, output] = [Object.assign(new PassThrough(), { isTTY: true }), new PassThrough()]
    const confirmed = confirm({ stdin: input, stderr: output }, 'Remove it?')
    input.end(text)
    return { confirmed: await confirmed, asked: String(output.read()) }
  }
  t.same(await answer('y\n'), { confirmed: true, asked: 'Remove it? [y/N] ' })
  t.match(await answer(' YES \n'), { confirmed: true })
  for (const text of ['\n', 'no\n', 'yesterday\n', '']) t.match(await answer(text), { confirmed: false })
})

nightly('14.4 a process has the output and the exit code of its command, and reads the folder, the environment and the input', async (t) => {
  const folder = t.testdir({ '.env': `DATABASE_URL=${DATABASE_URL}` })
  const cases: [words: string, input: string, settings: Record<string, string>, code: number][] = [
    ['--version', '', {}, 0],
    ['users list --limit 1 --json', '', { DATABASE_URL }, 0],
    ['sessions end --user nobody@example.com', '', { DATABASE_URL }, 1],
    ['users', '', {}, 2],
    ['admin create --email fourth@example.com --password-stdin', 'password1', { DATABASE_URL }, 2],
    ['config --json', '', {}, 0],
  ]
  await Promise.all(cases.map(async ([words, input, settings, code]) => {
    const given = [words.split(' '), settings, folder, input] as const
    const [own, here] = await Promise.all([spawnCommand(...given), runCommand(...given)])
    t.strictSame(own, here, words)
    t.equal(own.code, code, words)
  }))
})

t.test('14.4 commands leave nothing behind in a process that runs several', async (t) => {
  const stateOf = () => ({
    env: { ...process.env },
    cwd: process.cwd(),
    code: process.exitCode,
    umask: process.umask(),
    listeners: process.eventNames().map((name) => [name, process.listenerCount(name)]),
    console: { ...console },
  })
  const before = stateOf()
  const folder = t.testdir({ '.env': 'PRODUCT_NAME=Of the file\n' })
  const shown = async (settings: Record<string, string>, where: string) => {
    const { stdout } = await runCommand(['config', '--json'], settings, where)
    const { settings: all } = JSON.parse(stdout) as { settings: { name: string, value: unknown, source: string }[] }
    return all.find(({ name }) => name === 'PRODUCT_NAME')
  }
  const [one, two, three] = await Promise.all([
    shown({}, folder), shown({ PRODUCT_NAME: 'Given' }, folder), shown({}, cwd),
    usher('users list'), usher('sessions end'), usher('status'), failStart({ PORT: 'x' }, folder),
    usher('backup backup.tar.gz', { cwd: folder }),
  ])
  t.match([one, two, three], [
    { value: 'Of the file', source: '.env' },
    { value: 'Given', source: 'environment' },
    { value: 'Usher', source: 'default' },
  ])
  t.strictSame(stateOf(), before)
})

nightly('14.4 a command whose result cannot be written says so and fails', async (t) => {
  const [full, FAILED] = ['The result could not be written to standard output (ENOSPC).\n', { code: 1 }]
  for (const words of ['--version', 'status --help', 'users list', 'users list --json']) {
    const run = async (stdout: Writable) => {
      const given = surroundings({ DATABASE_URL }, cwd)
      const code = await main({ args: words.split(' '), ...given, stdout })
      return { code, stderr: given.stderr.text }
    }
    t.strictSame(await run(createWriteStream('/dev/full')), { ...FAILED, stderr: full }, words)
    const reader = spawn('sh', ['-c', 'exec <&-; echo closed; exec sleep 600'], { stdio: ['pipe', 'pipe', 'ignore'] })
    await once(reader.stdout, 'data')
    t.strictSame(await run(reader.stdin), { code: 0, stderr: '' }, `${words}, which nobody reads`)
    reader.kill()
  }
  for (const words of ['--help', 'users list']) {
    const { command: [file, args], env } = nodeCommand([server, ...words.split(' ')])
    const run = async (output: string) => {
      const script = `"$0" "$@" ${output}`
      const child = spawn('sh', ['-c', script, file, ...args], {
        cwd, env: { ...env, DATABASE_URL }, stdio: ['ignore', 'pipe', 'pipe'],
      })
      const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'close'), text(child.stdout)])
      return { code, stderr }
    }
    t.strictSame(await run('> /dev/full'), { ...FAILED, stderr: full }, words)
    t.strictSame(await run('| true'), { code: 0, stderr: '' }, `${words}, which nobody reads`)
  }
})
