import { openDatabase } from '../../db/driver/connection.ts'
import { inspectStandby } from '../../db/replicas/inspect-standby.ts'
import { hostOfUrl } from '../../schema/options/database-url.ts'
import { multiplyDeadlines } from '../../schema/options/deadlines.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import type { Settings } from '../settings/settings.ts'
import { check, ok, skipped, warning, type Check } from './check.ts'

const KIB = 1024

/** Checks each standby of `REPLICA_URLS`. One that cannot be used is a warning: the primary answers instead. */
export async function checkReplicas (settings: Settings): Promise<Check[]> {
  const { DATABASE_URL, REPLICA_URLS: urls } = settings
  if (!DATABASE_URL || urls.length === 0) {
    return [await check('replicas', () => skipped('REPLICA_URLS is not set: the primary answers all reads'))]
  }
  const deadlines = multiplyDeadlines(settings.DEADLINE_FACTOR)
  const log = { warn () {}, info () {}, error () {} }
  const { schema } = readOptions({ databaseUrl: DATABASE_URL })
  const { db, close } = openDatabase({ database: DATABASE_URL, schema, poolSize: 2, deadlines, log })
  try {
    return await Promise.all(urls.map((url) => check(`replica ${hostOfUrl(url)}`, async () => {
      try {
        const status = await inspectStandby(db, url, deadlines)
        if (status.problem !== undefined) return warning(`${status.problem}: the primary answers instead`)
        const { behindBytes, connections } = status
        const used = `${connections} connection${connections === 1 ? '' : 's'} of nodes`
        return ok(`${Math.ceil(behindBytes / KIB)} KiB behind the primary, ${used}`)
      } catch (error) {
        return warning(`it cannot be used (${(error as Error).message}): the primary answers instead`)
      }
    })))
  } finally {
    await close()
  }
}
