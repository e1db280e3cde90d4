import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Sql } from 'postgres'
import type { Test } from 'tap'
import { environment, findPrograms } from '../../../node/embedded/binaries.ts'
import { openCluster } from '../../../node/embedded/cluster.ts'
import { stopBackends } from '../../helpers/backends.ts'
import { prepareFolder } from '../../helpers/database.ts'
import { startNode, type ServingNode } from '../../helpers/node.ts'
import { findPort } from '../../helpers/port.ts'
import { runProgram } from '../../helpers/program.ts'
import { createProxy, type Proxy } from '../../helpers/proxy.ts'
import { openSql } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'
import type { Fault, Link } from './schedule.ts'

// The library is in Debian's package libfaketime. This variant is for programs with threads.
const LIBRARY = '/usr/$LIB/faketime/libfaketimeMT.so.1'
const HOUR_SECONDS = 3600
const SETTINGS = [
  'fsync=off', 'listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=200',
  'log_min_messages=fatal',
]

export const admin = { email: 'root@example.com', password: 'horse battery staple' }

export interface Cluster {
  readonly sql: Sql
  readonly nodes: readonly ServingNode[]
  /** Performs a fault. Resolves when it is over. */
  perform (fault: Fault): Promise<void>
}

/**
 * Starts PostgreSQL and nodes until the test ends. Every link between them has its own proxy, and every clock can be
 * set.
 */
export async function startCluster (t: Test, nodeCount: number): Promise<Cluster> {
  const folder = await prepareFolder(t)
  const clock = await createClock(join(folder, 'clock-of-postgresql'))
  const url = await startPostgreSQL(t, folder, clock.environment)
  const sql = openSql(t, { options: { databaseUrl: url, schema: 'usher' } })
  const members: Member[] = []
  for (let index = 0; index < nodeCount; index++) members.push(await startMember(t, folder, url, index))
  await Promise.all([
    verifyClock(clock, async () => (await sql<{ now: Date }[]>`select clock_timestamp() as now`)[0]!.now.getTime()),
    ...members.map(({ node, clock }) =>
      verifyClock(clock, async () => Date.parse((await node.fetch('/health/live')).headers.get('date')!))),
  ])

  async function perform (fault: Fault): Promise<void> {
    const pass = () => delay(fault.milliseconds)
    if (fault.kind === 'stopBackends') return stopBackends(sql, fault.count, pass)
    if (fault.kind === 'setDatabaseClockForward') return clock.advance(fault.seconds)
    if (fault.kind === 'setDatabaseClockBack') return clock.advance(-fault.seconds)
    const { node, links, clock: nodeClock } = members[fault.node]!
    switch (fault.kind) {
      case 'pauseNode':
        node.child.kill('SIGSTOP')
        await pass()
        node.child.kill('SIGCONT')
        return
      case 'setNodeClock':
        await nodeClock.advance(fault.offsetSeconds)
        await pass()
        return nodeClock.advance(-fault.offsetSeconds)
      case 'cutLink': return links[fault.link].cut()
      case 'halfOpenLink': return links[fault.link].abandon()
      case 'pauseLink':
        links[fault.link].freeze()
        await pass()
        links[fault.link].thaw()
        return
      case 'refuseLink':
        links[fault.link].refuse()
        await pass()
        return links[fault.link].listen()
      case 'delayReplies':
      case 'delayRequests':
        links[fault.link][fault.kind](fault.delayMs)
        await pass()
        links[fault.link][fault.kind](0)
    }
  }

  return { sql, nodes: members.map(({ node }) => node), perform }
}

async function startPostgreSQL (t: Test, folder: string, clock: NodeJS.ProcessEnv): Promise<string> {
  const programs = await findPrograms()
  const { runAs: way, password, data } = await openCluster(folder, programs, false, () => {})
  const port = await findPort()
  const words = [
    ...way.before, programs.postgres, '-D', data, '-p', String(port), ...SETTINGS.flatMap((setting) => ['-c', setting]),
  ]
  await runProgram(t, port, words, { ...way.options, env: { ...environment(), ...clock }, cwd: '/', stop: 'SIGINT' })
  return `postgres://usher:${password}@127.0.0.1:${port}/usher`
}

interface Member { readonly node: ServingNode, readonly links: Readonly<Record<Link, Proxy>>, readonly clock: Clock }

async function startMember (t: Test, cwd: string, databaseUrl: string, index: number): Promise<Member> {
  const links = { statements: await createProxy(t, databaseUrl), notifications: await createProxy(t, databaseUrl) }
  const clock = await createClock(join(cwd, `clock-of-node-${index}`))
  const settings = {
    ...clock.environment,
    DATABASE_URL: links.statements.url,
    NOTIFICATIONS_URL: links.notifications.url,
    ADMIN_EMAIL: admin.email,
    ADMIN_PASSWORD: admin.password,
    LOG_LEVEL: 'error',
  }
  return { node: await startNode(t, { cwd, settings }), links, clock }
}

interface Clock {
  /**
   * The environment variables with which the clock of a process can be set. The monotonic clock is not affected, as on
   * a real machine.
   */
  readonly environment: Readonly<Record<string, string>>
  /** Sets the clock forward, or back if `seconds` is negative. The process notices after about a second. */
  advance (seconds: number): Promise<void>
}

async function createClock (file: string): Promise<Clock> {
  let offset = 0
  const write = () => writeFile(file, offset < 0 ? String(offset) : `+${offset}`)
  await write()
  return {
    environment: {
      LD_PRELOAD: LIBRARY,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: '1',
      DONT_FAKE_MONOTONIC: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },

    advance (seconds) {
      offset += seconds
      return write()
    },
  }
}

/** Checks that setting the clock has an effect. */
async function verifyClock (clock: Clock, read: () => Promise<number>): Promise<void> {
  const isAhead = async () => await read() > Date.now() + HOUR_SECONDS * 500
  await clock.advance(HOUR_SECONDS)
  await until('the clock is ahead', isAhead)
  await clock.advance(-HOUR_SECONDS)
  await until('the clock is right', async () => !await isAhead())
}
