import { openDatabase } from '../../db/driver/connection.ts'
import { readBackupAge } from '../../db/audit/audit.ts'
import { listPending } from '../../db/migrations/index.ts'
import { countWaiting } from '../../db/outbox/waiting.ts'
import { listFailedDeliveries } from '../../db/outbox/failures.ts'
import { readServerStatus } from '../../db/driver/server-status.ts'
import type { Secrets } from '../../db/sign-in/encryption.ts'
import { listSigningKeys, openSigningKey, type SigningKeyRow } from '../../db/access/signing-keys.ts'
import type { Database } from '../../db/tables/index.ts'
import { join } from 'node:path'
import { multiplyDeadlines } from '../../schema/options/deadlines.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import { explain } from '../data.ts'
import { dataDirOf, schemaOf } from '../settings/service-options.ts'
import type { Settings } from '../settings/settings.ts'
import { requireAnswer } from '../wait-for-database.ts'
import { check, failed, ok, skipped, warning, type Check } from './check.ts'

// The database has its own clock, which nodes follow. A large difference makes logs and certificates hard to trust.
const CLOCK_SECONDS = 2
const FAILURES = 1000
// One a night, and some hours more.
const BACKUP_HOURS = 36

const NAMES = ['tables', 'signing keys', 'clock', 'nodes', 'events', 'backups'] as const

interface Target { db: Database, schema: string, secrets: Secrets }

/** Checks the database and what is stored in it. */
export async function checkDatabase (settings: Settings): Promise<Check[]> {
  const source = await requireAnswer(settings).then(() => locate(settings)).catch((error: Error) => error)
  if (source instanceof Error || source === undefined) {
    const detail = source?.message ?? 'the embedded PostgreSQL does not run: start a node'
    return [await check('database', () => failed(detail)), ...await skipAll()]
  }
  const { schema } = readOptions(schemaOf(settings))
  const log = { warn () {}, info () {}, error () {} }
  const { db, close } = openDatabase({
    database: source.url, schema, poolSize: 2, deadlines: multiplyDeadlines(settings.DEADLINE_FACTOR), log,
  })
  try {
    const secrets = { secret: source.secret, formerSecret: settings.FORMER_SECRET }
    return await checkTables({ db, schema, secrets }, (error) => explain(error, settings))
  } finally {
    await close()
  }
}

// Returns the running database, and the secret of the signing keys.
async function locate (
  settings: Settings
): Promise<{ url: string, secret: string | undefined } | undefined> {
  const { DATABASE_URL, SECRET } = settings
  if (DATABASE_URL) return { url: DATABASE_URL, secret: SECRET }
  const [{ findRunning }, { tryRead }] =
    await Promise.all([import('../embedded/cluster.ts'), import('../settings/secret.ts')])
  const url = await findRunning(dataDirOf(settings))
  return url === undefined ? undefined : { url, secret: SECRET ?? await tryRead(join(dataDirOf(settings), 'secret')) }
}

async function checkTables ({ db, schema, secrets }: Target, explain: (error: Error) => string): Promise<Check[]> {
  const status = await readServerStatus(db).catch((error: Error) => error)
  if (status instanceof Error) return [await check('database', () => failed(explain(status))), ...await skipAll()]
  const { version, isStandby, nodes, clockAhead, roundTrip } = status
  const { pending, newer } = await listPending(db, schema)
    .catch((error: Error) => ({ pending: error, newer: [] as string[] }))
  // Without its tables, the rest cannot be read.
  const hasTables = !(pending instanceof Error) && pending.length === 0
  const onTables = (name: string, run: Parameters<typeof check>[1]) =>
    check(name, hasTables ? run : () => skipped('the tables are not up to date'))
  return Promise.all([
    check('database', () => isStandby
      ? failed(`PostgreSQL ${version} is a standby, which accepts no writes`)
      : ok(`PostgreSQL ${version}, answers in ${Math.ceil(roundTrip * 1000)} ms`)),
    check('tables', () => {
      if (pending instanceof Error) return failed(explain(pending))
      const count = `${pending.length} migration${pending.length === 1 ? ' is' : 's are'}`
      if (pending.length > 0) return failed(`${count} pending: start a node, or run "migrate"`)
      return newer.length > 0
        ? warning(`a newer version of Usher has changed them (${newer.join(', ')})`)
        : ok('up to date')
    }),
    onTables('signing keys', async () => {
      const keys = await listSigningKeys(db)
      if (keys.length === 0) return warning('there is none: the first start of a node creates one')
      // The newest is the first. After a rotation with a new secret, older ones stay while their tokens live.
      openSigningKey(secrets, keys[0]!)
      const isOfAnother = (key: SigningKeyRow) => {
        try {
          openSigningKey(secrets, key)
          return false
        } catch {
          return true
        }
      }
      const [later, others] = [keys.filter(({ activeIn }) => activeIn > 0).length, keys.filter(isOfAnother).length]
      const rest = others === 0 ? '' : `, and ${others} have another SECRET`
      return ok(`${keys.length}, of which ${later} will sign later${rest}`)
    }),
    check('clock', () => {
      const detail = `${Math.abs(clockAhead).toFixed(2)} seconds ${clockAhead < 0 ? 'behind' : 'ahead of'} the database`
      return Math.abs(clockAhead) - roundTrip / 2 > CLOCK_SECONDS
        ? warning(`${detail}: set the clock of this machine`)
        : ok(detail)
    }),
    check('nodes', () => nodes === 0
      ? failed('no node is connected')
      : ok(`${nodes} ${nodes === 1 ? 'process is' : 'processes are'} connected`)),
    onTables('events', async () => {
      const [waiting, lost] = await Promise.all([countWaiting(db), listFailedDeliveries(db, { limit: FAILURES })])
      const count = (of: 'count' | 'retrying') => waiting.reduce((sum, queue) => sum + queue[of], 0)
      const detail =
        `${count('count')} events and mails are waiting, ${count('retrying')} of them have failed before, ` +
          `${lost.length === FAILURES ? 'at least ' : ''}${lost.length} were given up`
      return count('retrying') + lost.length > 0 ? warning(`${detail}: see "events list"`) : ok(detail)
    }),
    onTables('backups', async () => {
      const age = await readBackupAge(db)
      if (age === undefined) return warning('none is known: run "backup" every night')
      const hours = Math.floor(age / 3600)
      const detail =
        `the last one was made ${hours === 0 ? 'less than an hour' : hours === 1 ? 'an hour' : `${hours} hours`} ago`
      return hours >= BACKUP_HOURS ? warning(`${detail}: run "backup" every night`) : ok(detail)
    }),
  ])
}

const skipAll = (): Promise<Check[]> =>
  Promise.all(NAMES.map((name) => check(name, () => skipped('the database cannot be reached'))))
