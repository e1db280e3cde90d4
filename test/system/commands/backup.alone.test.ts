import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chownSync, existsSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { backupTables } from '../../../db/tables/backup-tables.ts'
import { migrate } from '../../../db/migrations/index.ts'
import { partOf } from '../../../node/backup/format.ts'
import { createKey } from '../../helpers/api-keys.ts'
import { createUsher } from '../../helpers/app.ts'
import {
  backUp, placeOf, restore, rewrite, rowsOf, schema, structureOf, withSql, type Place,
} from '../../helpers/backup.ts'
import { runCommand } from '../../helpers/command.ts'
import { openConnection } from '../../helpers/connection.ts'
import { createDatabase } from '../../helpers/database.ts'
import { createPost, openSocket, post } from '../../helpers/graphql.ts'
import { nightly } from '../../helpers/nightly.ts'
import { checkDatabase } from '../../../node/status/database.ts'
import { parseSettings } from '../../../node/settings/settings.ts'
import { temporaryFolder } from '../../helpers/temporary-folder.ts'
import { until } from '../../helpers/until.ts'
import { upload } from '../../helpers/uploads.ts'
import { userFields } from '../../helpers/user-fields.ts'

t.jobs = 2

/** Starts a service on an empty database. */
async function startSource (t: Test, options = {}) {
  const source = await createUsher(
    t, { databaseUrl: await createDatabase(t), schema, uploadsDir: temporaryFolder(), ...options }
  )
  return { source, place: placeOf(source) }
}

const emptyPlace = async (t: Test): Promise<Place> =>
  ({ database: await createDatabase(t, { empty: true }), uploadsDir: temporaryFolder() })
const backupFile = () => join(temporaryFolder(), 'backup.tar.gz')
/** Starts a service on a restored place. */
const startRestored = ({ database, uploadsDir }: Place, t: Test, options = {}) =>
  createUsher(t, { databaseUrl: database, schema, uploadsDir, ...options })

/** Adds rows to the tables that the service fills rarely, with values that are difficult to copy. */
const fillTables = (database: string, userId: string) => withSql(database, async (sql) => {
  const [id, hash, text] = [userId, Buffer.from([0, 92, 255, 10]), 'a\\N\tb\n\r\'" \\. ü 🙂']
  const later = new Date(Date.now() + 3_600_000)
  await sql`insert into password_links (hash, user_id, expires_at) values (${hash}, ${id}, ${later})`
  await sql`insert into sign_ups (hash, name, email, password_hash, binding_hash, expires_at, fields) values (${hash}, ${text}, 'x@example.com', 'x', ${hash}, ${later}, ${sql.json({ text })})`
  await sql`insert into verification_links (hash, user_id, email, expires_at) values (${hash}, ${id}, 'y@example.com', ${later})`
  await sql`insert into undo_links (hash, user_id, email, email_verified, expires_at) values (${hash}, ${id}, 'z@example.com', true, ${later})`
  const organization = randomUUID()
  await sql`insert into organizations (id, name, slug) values (${organization}, ${text}, 'filled')`
  await sql`insert into memberships (id, organization_id, user_id, role) values (gen_random_uuid(), ${organization}, ${id}, 'owner')`
  await sql`insert into organization_invitations (id, hash, organization_id, email, role, expires_at) values (gen_random_uuid(), ${hash}, ${organization}, 'o@example.com', 'member', ${later})`
  await sql`insert into throttle values ('key', ${later}, 1)`
  await sql`insert into mail_limits values ('key', ${later})`
  await sql`insert into failed_logins values (now() - interval '1 day', ${text}, 7)`
  await sql`insert into deleted_users (user_id) values (gen_random_uuid())`
  await sql`insert into post_deletions (position, epoch, post_id, author_id)
    select nextval(pg_get_serial_sequence('posts', 'position')), 0, gen_random_uuid(), ${id}::uuid`
  await sql`insert into post_drafts (id, author_id, title, content, publish_at)
    values (gen_random_uuid(), ${id}, ${text}, ${text}, ${later})`
  await sql`insert into login_failures (key, count) values (${hash}, 7)`
  await sql`insert into ended_sessions (id) values (gen_random_uuid())`
  await sql`insert into event_consumers (name, type) values ('handler h', 'user.created')`
  await sql`insert into outbox (consumer, type, subject, data) values ('handler h', 'user.created', ${id}, ${sql.json({ text })})`
  await sql`insert into failed_deliveries (id, consumer, type, subject, data, created_at, attempts, error) values (gen_random_uuid(), 'c', 't', ${id}, ${sql.json({ text })}, '0044-03-15 12:00:00.123456 BC', 3, ${text})`
  await sql`insert into idempotency_keys (key, part, fingerprint, kind, record_id, result, row_version) values (gen_random_uuid(), gen_random_uuid(), 'f', 'user', ${id}, ${text}, -9223372036854775808)`
  await sql`insert into identities (id, user_id, provider, issuer, subject, email, tokens)
    values (gen_random_uuid(), ${id}, 'github', 'https://github.com', ${text}, ${text}, ${text})`
  await sql`insert into passkeys (id, user_id, credential_id, public_key, counter, transports, name, backed_up)
    values (gen_random_uuid(), ${id}, ${hash}, ${hash}, 4294967295, array['usb', ${text}], ${text}, true)`
  await sql`insert into totp (user_id, secret, last_step) values (${id}, ${text}, 9007199254740993)`
  await sql`insert into recovery_codes (user_id, hash) values (${id}, ${hash})`
  await sql`insert into upload_links (id, upload_id, owner_id, name, secret_hash, expires_at)
    select gen_random_uuid(), gen_random_uuid(), ${userId}, 'Link', decode('00ff', 'hex'), now() + interval '1 day'`
  await sql`insert into resumable_uploads (id, user_id, networks, metadata, length, expires_at)
    values (gen_random_uuid(), ${id}, ${[text]}, ${text}, 1, ${later})`
  await sql`insert into audit_counts (day, action, count) values ('2026-01-31', 'login', 7)
    on conflict do nothing`
  await sql`insert into api_keys (id, user_id, hash, name, actions, multi_factor, last_used_at, expires_at)
    values (gen_random_uuid(), ${id}, ${hash}, ${text}, ${['posts:read', 'a b']}, true, now(), ${later})`
  await sql`insert into login_challenges (hash, user_id, amr, expires_at) values (${hash}, ${id}, array['pwd'], ${later})`
  await sql`insert into login_links (hash, user_id, code_hash, address_hash, expires_at) values (${hash}, ${id}, ${hash}, ${hash}, ${later})`
  await sql`insert into used_ceremonies (hash, expires_at) values (${hash}, ${later})`
  await sql`insert into user_imports (file_hash, position) values (${hash}, 9007199254740993)`
  await sql`insert into password_kinds (kind, signer_key) values ('$2b$10$', ${text})`
  await sql`insert into replica_marks (id) values (${userId})`
})

t.test('14.4 every table of the schema is either backed up or deliberately left out', { buffered: true }, async (t) => {
  const { place } = await startSource(t)
  const tables = await withSql(place.database, (sql) => sql<{
    name: string
  }[]>`select tablename as name from pg_tables where schemaname = ${schema} and tablename <> 'migrations'`)
  t.same(
    tables.map(({ name }) => name).sort(), Object.keys(backupTables).sort(), 'db/tables/backup-tables.ts lists them'
  )
})

t.test('14.4 a backup made while clients write has every record that was acknowledged before, also fields of the host', { buffered: true }, async (t) => {
  const { source, place } = await startSource(t, { userFields })
  const user = await source.createUser({ name: 'Ada' })
  t.equal((await source.inject(
    'PATCH', `/api/users/${user.id}`, { headers: source.admin.headers, payload: { bio: 'Countess', tags: ['a', 'b'] } }
  )).statusCode, 200)
  const files = await Promise.all(['text', '', 'x'.repeat(70_000)].map((content) => upload(source, content)))
  await createPost(source, user, 'A post')
  await fillTables(place.database, user.id)
  const before = await rowsOf(place.database)
  for (const [table, rows] of Object.entries(before)) t.ok(rows.length > 0, `there are rows in ${table}`)

  const file = backupFile()
  const stop = new AbortController()
  const writes = (async () => {
    while (!stop.signal.aborted) {
      await Promise.all([createPost(source, user, 'Meanwhile'), upload(source, 'meanwhile'), source.createUser()])
    }
  })()
  const result = await backUp(place, file)
  stop.abort()
  await writes
  t.same([result.missing, result.files >= files.length], [0, true])
  t.ok(
    result.rows['users']! >= before['users']!.length && result.rows['audit']! >= before['audit']!.length,
    'rows are counted'
  )
  t.equal(statSync(file).mode & 0o777, 0o600)
  await source.app.close()

  const target = await emptyPlace(t)
  const restored = await restore(file, target)
  t.equal(restored.missing, 0)
  const after = await rowsOf(target.database)
  for (const [table, rows] of Object.entries(before)) {
    const kept = backupTables[table as keyof typeof backupTables] === 'kept'
    t.same(kept ? rows.filter((row) => !after[table]!.includes(row)) : after[table], [], table)
  }
  t.same(await structureOf(target.database), await structureOf(place.database))
  t.same(
    readdirSync(join(target.uploadsDir, 'files')).sort(),
    after['uploads']!.map((row) => JSON.parse(row).id).sort(),
    'there is a file for each record, and no other'
  )

  const there = await startRestored(target, t, { userFields })
  t.match(
    (await there.inject('GET', `/api/users/${user.id}`)).json(), { name: 'Ada', bio: 'Countess', tags: ['a', 'b'] }
  )
  t.equal((await there.inject('GET', files[2]!.fileUrl)).body, 'x'.repeat(70_000))
  t.match(await createPost(there, await there.login(user), 'Afterwards'), /./)
})

t.test('14.4 sessions end with a restore, unless they are kept', { buffered: true }, async (t) => {
  const { source, place } = await startSource(t, { secret: 'a secret of the test' })
  const user = await source.createUser()
  const file = backupFile()
  await backUp(place, file)
  await source.app.close()
  const status = async (options: object) => {
    const target = await emptyPlace(t)
    await restore(file, target, options)
    const there = await startRestored(target, t, { secret: 'a secret of the test' })
    const refreshed = await there.inject('POST', '/api/auth/refresh', { headers: { cookie: user.cookie } })
    return [(await there.inject('GET', '/api/protected', { headers: user.headers })).statusCode, refreshed.statusCode]
  }
  t.same(await status({}), [401, 401])
  t.same(await status({ keepsSessions: true, secret: 'a secret of the test' }), [200, 200])
  for (const secret of [undefined, 'another secret']) {
    await t.rejects(restore(file, await emptyPlace(t), { keepsSessions: true, secret }), {
      message: /^SECRET does not open the signing keys of the backup/,
    })
  }
})

t.test('14.4 organisations come back with members and invitations, and API keys for them do not', { buffered: true }, async (t) => {
  const { source, place } = await startSource(t, { organizations: true, mailer: () => {} })
  const { organizations } = source.app.usher
  const [founder, member] = [await source.createUser(), await source.createUser()]
  const { id } = await organizations.create({ name: 'Engines', ownerId: founder.id })
  await organizations.members.add(id, { userId: member.id, role: 'admin' })
  await organizations.invitations.create(id, { email: 'invited@example.com' })
  const { headers } = await createKey(source, member, { organizationId: id })
  const members = await organizations.members.list(id)
  const invitations = await organizations.invitations.list(id)
  const file = backupFile()
  await backUp(place, file)
  await source.app.close()

  const target = await emptyPlace(t)
  await restore(file, target)
  const restored = await startRestored(target, t, { organizations: true })
  const { usher } = restored.app
  t.match(await usher.organizations.get(id), { name: 'Engines', slug: 'engines' })
  t.strictSame(await usher.organizations.members.list(id), members)
  t.strictSame(await usher.organizations.invitations.list(id), invitations)
  t.equal((await restored.inject('GET', `/api/organizations/${id}`, { headers })).statusCode, 401)
  const again = await restored.login(member)
  t.equal((await restored.inject('GET', `/api/organizations/${id}`, { headers: again.headers })).statusCode, 200)
})

nightly('14.4 a file that is incomplete, damaged, of another program, format or release is refused, and nothing changes', { buffered: true }, async (t) => {
  const { source, place } = await startSource(t)
  await upload(source, 'content '.repeat(10_000))
  const file = backupFile()
  await backUp(place, file)
  await source.app.close()
  const [good, target, before] = [readFileSync(file), await emptyPlace(t), await rowsOf(place.database)]
  const tar = gunzipSync(good)
  const refused = async (content: Buffer, message: RegExp, name: string) => {
    writeFileSync(file, content)
    await t.rejects(restore(file, target), { message }, name)
    await t.rejects(restore(file, place, { replaces: true }), { message }, `${name}, into a database with data`)
  }
  const isSame = (bytes: Buffer) => {
    try {
      return gunzipSync(bytes).equals(tar)
    } catch {
      return false
    }
  }
  // Some bits of a compressed file have no meaning: the next one that has is changed.
  const flipped = (bytes: Buffer, at: number): Buffer => {
    const changed = Buffer.from(bytes).fill(bytes[at]! ^ 1, at, at + 1)
    return isSame(changed) ? flipped(bytes, at + 1) : changed
  }
  const edited = (from: string, to: string) => gzipSync(Buffer.from(tar.toString('latin1').replace(from, to), 'latin1'))

  for (const part of [0.3, 0.7, 0.99]) {
    await refused(
      good.subarray(0, good.length * part),
      part < 0.5 ? /is incomplete|beginning is damaged/ : /is incomplete: its end is missing/,
      `${part} of it`
    )
  }
  await refused(good.subarray(0, 5), /is not a backup of Usher/, 'five bytes')
  await refused(Buffer.alloc(0), /is not a backup of Usher/, 'an empty file')
  await refused(gzipSync(tar.subarray(0, tar.length - 2048)), /is incomplete|is damaged/, 'an archive without its end')
  for (const part of [0.2, 0.5, 0.8]) {
    await refused(
      flipped(good, Math.floor(good.length * part)), /is (damaged|incomplete)|not a backup/, `a bit at ${part}`
    )
  }
  await refused(
    edited('content content', 'Content content'),
    /is damaged: its content does not have its checksum/,
    'a changed upload'
  )
  await refused(edited('admin@example.com', 'other@example.com'), /is damaged/, 'a changed row')
  await refused(Buffer.from('a text'), /is not a backup of Usher/, 'a text')
  await refused(gzipSync('a text'), /is not a backup of Usher/, 'a compressed text')
  await refused(edited('"usher backup"', '"other backup"'), /is not a backup of Usher/, 'another program')
  await refused(
    edited('"version": 1', '"version": 7'),
    /has the format 7, of release \S+, and this release reads the format 1/,
    'another format'
  )
  await refused(
    edited('"0001"', '"9999"'),
    /is from release \S+, and this release \S+ does not know its tables \(9999\)/,
    'another release'
  )
  await t.rejects(restore(`${file}.none`, target), { message: /^There is no file / })
  await t.rejects(restore(temporaryFolder(), target), { message: /cannot be read \(EISDIR\)/ })

  t.same(await rowsOf(place.database), before)
  t.same(await withSql(target.database, (sql) => sql`select 1 from pg_namespace where nspname = ${schema}`), [])
  t.same(readdirSync(target.uploadsDir), [])
})

nightly('14.4 a restore that the database rejects at the very end of a table fails, and nothing changes', { buffered: true }, async (t) => {
  const { source, place } = await startSource(t)
  const file = backupFile()
  await backUp(place, file)
  await source.app.close()
  const before = await rowsOf(place.database)
  const first = partOf('users', 0)
  // PostgreSQL notices a second user with the same id, and a NUL byte, when it has all rows.
  for (const [bytes, code] of [[undefined, '23505'], [Buffer.from('a\0b\n'), '22021']] as const) {
    const hostile = backupFile()
    await rewrite(file, hostile, (name, content) =>
      name === first ? [[name, content], [partOf('users', 1), bytes ?? content]] : [[name, content]])
    await t.rejects(restore(hostile, place, { replaces: true }), {
      message: new RegExp(
        `^The rows of users in the backup cannot be restored \\(${code}: .*\\)\\. Nothing was changed`
      ),
    })
  }
  t.same(await rowsOf(place.database), before)
  t.match(await restore(file, place, { replaces: true }), { files: 0 }, 'the connection is gone')
})

nightly('14.4 of two backups to the same file at once, one fails with a message, and the other is complete', { buffered: true }, async (t) => {
  const { source, place } = await startSource(t)
  const folder = temporaryFolder()
  const file = join(folder, 'backup.tar.gz')
  const other = await startSource(t)
  // The second one begins and ends while the first one writes.
  let isFirst = true
  const first = backUp(place, file, async () => {
    if (!isFirst) return
    isFirst = false
    await backUp(other.place, file)
  })
  await t.rejects(first, { message: `${file} exists: choose another name.` })
  await source.app.close()
  t.same(readdirSync(folder), ['backup.tar.gz'], 'no partial file is left')
  await restore(file, await emptyPlace(t))
})

nightly('14.4 a second backup of a database beside another one says that it has to wait', { buffered: true }, async (t) => {
  const { source, place } = await startSource(t)
  let second: unknown
  await backUp(place, backupFile(), async () => {
    second ??= await backUp(place, backupFile()).catch((error: unknown) => error)
  })
  t.match(second, { message: 'Another backup of this database is running: wait until it has ended.' })
  await source.app.close()
})

nightly('14.4 what root restores belongs to the owner of the folder', { buffered: true }, async (t) => {
  const { source, place } = await startSource(t)
  const { id } = await upload(source, 'text')
  const file = backupFile()
  await backUp(place, file)
  const target = await emptyPlace(t)
  // Only root can give a folder away. Others own everything in any case.
  const uid = process.getuid!() || 65534
  chownSync(target.uploadsDir, uid, -1)
  const uploadsDir = join(target.uploadsDir, 'new', 'folder')
  await restore(file, { ...target, uploadsDir })
  const paths = ['', 'files', 'tmp', `files/${id}`, '..'].map((path) => join(uploadsDir, path))
  t.same(paths.map((path) => statSync(path).uid), paths.map(() => uid))
})

nightly('14.4 data that exist are replaced on request only, and not while a node runs or another table refers to them', { buffered: true }, async (t) => {
  const { source, place } = await startSource(t)
  const kept = await upload(source, 'kept')
  const file = backupFile()
  await backUp(place, file)
  const later = await upload(source, 'later')
  await t.rejects(restore(file, place, { replaces: true }), { message: /^Nodes or commands of Usher use the database/ })
  await source.app.close()
  await t.rejects(restore(file, place), { message: 'there is a database with 1 users and 2 files of uploads' })

  await withSql(place.database, (sql) => sql`create function usher.of_host() returns int return 1`)
  await withSql(place.database, (sql) =>
    sql`create table usher.bookmarks (owner uuid references usher.users (id) on delete cascade)`)
  await t.rejects(restore(file, place, { replaces: true }), {
    message: /^Something else in the database refers to the tables of Usher \(.*bookmarks/,
  })
  await withSql(place.database, (sql) => sql`alter table usher.bookmarks drop constraint bookmarks_owner_fkey`)
  // A function of a migration that only a function of a trigger calls.
  await withSql(place.database, (sql) => sql.unsafe(`
    create function usher.helper() returns int return 1;
    create function usher.calling() returns trigger language plpgsql as 'begin perform "usher".helper(); return null; end';
    create trigger calling after insert on usher.users for each statement execute function usher.calling()`))
  t.match(await restore(file, place, { replaces: true }), { files: 1, missing: 0 })
  t.same(
    await withSql(place.database, (sql) =>
      sql`select proname from pg_proc where proname in ('helper', 'calling') and pronamespace = 'usher'::regnamespace`),
    []
  )
  await withSql(place.database, (sql) => sql`select usher.of_host() from usher.bookmarks`)
  const there = await startRestored(place, t)
  t.equal((await there.inject('GET', kept.fileUrl)).body, 'kept')
  t.equal((await there.inject('GET', later.fileUrl)).statusCode, 404)
  t.ok(existsSync(join(place.uploadsDir, 'files', later.id)), 'a file without a record stays (5.5)')
})

nightly('14.4 a restore says what was taken away since the backup and is back', { buffered: true }, async (t) => {
  const { source, place } = await startSource(t)
  const { inject, admin } = source
  const [gone, disabled, changed, kept] = [
    await source.createUser(), await source.createUser(), await source.createUser(), await source.createUser(),
  ]
  const identity = randomUUID()
  await withSql(place.database, (sql) => sql`insert into identities (id, user_id, provider, issuer, subject)
    values (${identity}, ${kept.id}, 'p', 'https://p.example', 's')`)
  // What precedes the backup is not said.
  await inject('PATCH', `/api/users/${kept.id}`, { headers: admin.headers, payload: { disabled: true } })
  await inject('PATCH', `/api/users/${kept.id}`, { headers: admin.headers, payload: { disabled: false } })
  const file = backupFile()
  await backUp(place, file)
  const created = await source.createUser()
  for (const { id } of [gone, created]) await inject('DELETE', `/api/users/${id}`, { headers: admin.headers })
  await inject('PATCH', `/api/users/${disabled.id}`, { headers: admin.headers, payload: { disabled: true } })
  const password = 'another long password'
  await inject('PUT', '/api/auth/password', {
    headers: changed.headers, payload: { currentPassword: changed.password, password },
  })
  await source.app.usher.credentials.removeIdentity(kept.id, identity)
  await source.app.close()

  const cwd = temporaryFolder()
  const settings = { DATABASE_URL: place.database, DATA_DIR: cwd }
  const { stdout, stderr, code } = await runCommand(
    ['restore', file, '--replace', '--yes', '--json', '--uploads-dir', place.uploadsDir], settings, cwd
  )
  t.equal(code, 0, stderr)
  const { undone } = JSON.parse(stdout) as { undone: { action: string, userId: string, at: string }[] }
  t.same(undone.map(({ action, userId }) => `${action} ${userId}`).sort(), [
    `user.delete ${gone.id}`, `user.disable ${disabled.id}`, `password.change ${changed.id}`, `identity.remove ${kept.id}`,
  ].sort(), 'and not the user whom the backup does not have')
  for (const { at } of undone) t.match(at, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  t.match(stderr, /deleted users: 1, of 1 user \(users delete\)/)
  t.match(stderr, /removed identities at providers: 1, of 1 user \(users reset-second-factor --identities\)/)

  const target = await emptyPlace(t)
  const restored = await runCommand(
    ['restore', file, '--uploads-dir', target.uploadsDir], { ...settings, DATABASE_URL: target.database }, cwd
  )
  t.match(restored.stdout, /Passkeys, identities, passwords and recovery codes are those of that moment/)
})

nightly('14.4 files that are deleted while a backup runs are in it, and are removed afterwards', { buffered: true }, async (t) => {
  const { source, place } = await startSource(t)
  const file = backupFile()
  const { id } = await upload(source, 'deleted meanwhile')
  const path = join(place.uploadsDir, 'files', id)
  let isDeleted = false
  const result = await backUp(place, file, async () => {
    if (isDeleted) return
    isDeleted = true
    await source.app.usher.uploads.delete(id)
    t.ok(existsSync(path))
  })
  t.match(result, { files: 1, missing: 0 })
  t.notOk(existsSync(path))
  execFileSync('tar', ['tzf', file])
  t.match(execFileSync('tar', ['xzOf', file, `uploads/${id}`]).toString(), 'deleted meanwhile')
})

nightly('14.4 a missing or damaged file of an upload does not prevent a backup, which names it', { buffered: true }, async (t) => {
  const { source, place } = await startSource(t)
  const [whole, cut, gone] = await Promise.all(['whole', 'cut off', 'gone'].map((text) => upload(source, text)))
  truncateSync(join(place.uploadsDir, 'files', cut!.id), 3)
  execFileSync('rm', [join(place.uploadsDir, 'files', gone!.id)])
  const file = backupFile()
  const { missing, missingIds } = await backUp(place, file)
  t.same([missing, missingIds.sort()], [2, [cut!.id, gone!.id].sort()])
  await source.app.close()
  const target = await emptyPlace(t)
  t.match(await restore(file, target), { files: 2, missing: 1 })
  t.equal(readFileSync(join(target.uploadsDir, 'files', whole!.id), 'utf8'), 'whole')
})

nightly('14.4 after a restore, a subscriber that has seen posts which the backup lacks gets CURSOR_LOST', { buffered: true }, async (t) => {
  const { source, place } = await startSource(t)
  const cursorOf = async (usher: typeof source, title: string) =>
    (await post(
      usher, { query: `mutation { createPost(input: { title: "${title}", content: "" }) { cursor } }` }, usher.admin
    )).data!['createPost'].cursor as string
  const first = await cursorOf(source, 'in the backup')
  const file = backupFile()
  await backUp(place, file)
  const lost = await cursorOf(source, 'after the backup')
  await source.app.close()
  await restore(file, place, { replaces: true })
  const there = await startRestored(place, t)
  const second = await cursorOf(there, 'after the restore')
  for (const [after, expected] of [[first, { payload: { data: { postCreated: { title: 'after the restore' } } } }], [
    lost, { type: 'error', payload: [{ extensions: { code: 'CURSOR_LOST' } }] },
  ]] as const) {
    const socket = await (await openSocket(t, there)).init()
    socket.start('s', `subscription { postCreated(after: "${after}") { title } }`)
    t.match(await socket.next(), expected)
  }
  t.not(second, lost)
})

nightly('14.4 no backup is made of a database that a newer release has changed, nor of an empty one', { buffered: true }, async (t) => {
  const place = await emptyPlace(t)
  await migrate((await openConnection(t, { database: place.database, schema })).db, schema)
  await withSql(place.database, (sql) => sql`insert into migrations values ('9999-future', 'later')`)
  await t.rejects(backUp(place, backupFile()), {
    message: 'A newer release of Usher has changed the database (9999-future): make the backup with that release.',
  })
  await t.rejects(backUp(await emptyPlace(t), backupFile()), { message: /there is nothing to back up/ })
})

t.test('14.4 usher backup and usher restore work on the command line and say what is wrong', { buffered: true }, async (t) => {
  const { source, place } = await startSource(t)
  await upload(source, 'by command')
  const cwd = temporaryFolder()
  const settings = { DATABASE_URL: place.database, DATA_DIR: cwd }
  const folder = ['--uploads-dir', place.uploadsDir]
  const made = await runCommand(['backup', 'b.tar.gz', ...folder], settings, cwd)
  t.match(made, {
    code: 0,
    stderr: /^(Backing up: .+\n)*$/,
    stdout: /^\d+ rows and 1 file \(10 bytes\) of \S+ are in \S+b\.tar\.gz: [\d.]+ KiB, [\d.]+ seconds\.\n$/,
  })
  t.same(readdirSync(cwd), ['b.tar.gz'])
  const target = await emptyPlace(t)
  const [again, nowhere, none, busy, done] = await Promise.all([
    runCommand(['backup', 'b.tar.gz', ...folder], settings, cwd),
    runCommand(['backup', 'none/b.tar.gz', ...folder], settings, cwd),
    runCommand(['backup', 'c.tar.gz'], { DATA_DIR: join(cwd, 'none') }, cwd),
    runCommand(['restore', 'b.tar.gz', ...folder], settings, cwd),
    runCommand(
      ['restore', 'b.tar.gz', '--uploads-dir', target.uploadsDir], { ...settings, DATABASE_URL: target.database }, cwd
    ),
  ])
  t.match(again, { code: 1, stderr: /b\.tar\.gz exists: choose another name\.\n$/ })
  t.match(
    nowhere, { code: 1, stderr: /b\.tar\.gz cannot be written \(ENOENT\): check the folder and its permissions\.\n$/ }
  )
  t.match(none, { code: 1, stderr: /^There is no database in .+: check DATA_DIR, or set DATABASE_URL\.\n$/ })
  t.match(busy, {
    code: 1, stderr: /^Nodes or commands of Usher use the database \(\d+ connections\): stop all of them first\.\n$/,
  })
  t.match(done, {
    code: 0,
    stderr: /^(Restoring: .+\n)*$/,
    stdout: /^\d+ rows were restored, and 1 file to \S+, as of \S+ \(release \S+\)\. Rows of sessions and keys were left out: all sessions have ended\. Passkeys, .+ since\.\n$/,
  })
  await source.app.close()
  // It is refused before the file is read, which takes long if it is large.
  for (const file of ['b.tar.gz', 'none.tar.gz']) {
    const refusal = /^There is a database with 1 users and 1 files of uploads already: repeat .* with --replace/
    t.match(await runCommand(['restore', file, ...folder], settings, cwd), { code: 1, stderr: refusal }, file)
  }
})

nightly('14.4 status and the metrics tell how long ago the last backup was made', { buffered: true }, async (t) => {
  const { source, place } = await startSource(t)
  const checked = async () =>
    (await checkDatabase(parseSettings({ DATABASE_URL: place.database }))).find(({ name }) => name === 'backups')
  const measured = async () =>
    (await source.app.usher.metrics()).find(({ name }) => name === 'usher_backup_age_seconds')!.samples
  t.match(await checked(), { state: 'warning', detail: 'none is known: run "backup" every night' })
  t.strictSame(await measured(), [])

  await backUp(place, backupFile())
  t.match(await checked(), { state: 'ok', detail: 'the last one was made less than an hour ago' })
  // The metrics are read from the database once a second at most.
  await until('the age is measured', async () => (await measured()).length > 0)
  const [sample] = await measured()
  t.ok('value' in sample! && sample.value >= 0 && sample.value < 3600)
  const { body } = await source.inject('GET', '/api/audit?action=backup.create', { headers: source.admin.headers })
  t.match(JSON.parse(body), [{ action: 'backup.create', actorId: null, userId: null }])

  await withSql(place.database, (sql) =>
    sql`update audit set created_at = now() - interval '37 hours' where action = 'backup.create'`)
  t.match(await checked(), { state: 'warning', detail: 'the last one was made 37 hours ago: run "backup" every night' })
  await until('it has grown', async () => {
    const [sample] = await measured()
    return 'value' in sample! && sample.value >= 37 * 3600
  })
})

nightly('14.4 a backup that fails is not known as the last one', { buffered: true }, async (t) => {
  const { place } = await startSource(t)
  await t.rejects(
    backUp(place, backupFile(), async () => { throw new Error('The disk is full') }), { message: 'The disk is full' }
  )
  const entries = await withSql(place.database, (sql) => sql`select from audit where action = 'backup.create'`)
  t.equal(entries.length, 0)
})
