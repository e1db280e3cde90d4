import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, chown, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseEnv } from 'node:util'
import type { Test } from 'tap'
import { accountFor, environment } from '../../node/embedded/binaries.ts'
import { query } from './embedded.ts'
import { findPort } from './port.ts'
import { runProgram } from './program.ts'
import { createProxy, type Proxy } from './proxy.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { until } from './until.ts'

const NAMES = ['one', 'two', 'three'] as const
const templates = join(import.meta.dirname, '../../deploy/patroni')
const read = (file: string) => readFile(join(templates, file), 'utf8')
const API_MS = 1000

/** A machine of the cluster: PostgreSQL, and the Patroni that runs it. */
export interface Member {
  readonly name: string
  /** The database of Usher there, past HAProxy. */
  readonly url: string
  /** The network between it and etcd. */
  readonly etcd: Pick<Proxy, 'freeze' | 'thaw'>
  /** Runs a statement as a superuser. */
  query (text: string): Promise<Record<string, unknown>[]>
  /** Returns the status of the check at a path of Patroni's API, or 0 if it does not answer. */
  check (path: 'primary' | 'replica'): Promise<number>
  /** What Patroni has logged. */
  log (): Promise<string>
  /** Ends all its processes at once. */
  kill (): Promise<void>
  /** Starts it again after that. */
  start (): Promise<void>
  /** Stops Patroni, or the whole machine, without ending it, until the returned function is called. */
  freeze (what: 'patroni' | 'machine'): Promise<() => void>
}

export interface PatroniCluster {
  /** The URL of the primary through HAProxy. */
  readonly url: string
  /** The URL of any standby through HAProxy. */
  readonly replicasUrl: string
  /** The URL with all members, past HAProxy. */
  readonly direct: string
  readonly members: readonly Member[]
  /** Resolves with the member that Patroni calls the primary, and that is not `other`. */
  leader (other?: Member): Promise<Member>
  /** Resolves when there is a leader, and all others follow it on the same timeline, one of them synchronously. */
  untilWhole (): Promise<void>
  switchover (to: Member): Promise<void>
  /** Changes the configuration that all members share. */
  configure (settings: object): Promise<void>
  /** Stops all of etcd without ending it, until the returned function is called. */
  freezeEtcd (): () => void
}

interface Addresses { readonly postgres: number, readonly api: number, readonly client: number, readonly peer: number }

/** Returns the process numbers of a process and of those that it has started. */
async function familyOf (parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = [parent]
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
    if (Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent) found.push(Number(pid))
  }
  return found
}

function signal (pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name)
    } catch (error) {
      // It has ended meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

/**
 * Starts etcd, Patroni and HAProxy with the files of deploy/patroni until the test ends: three members, each of which
 * would have a machine of its own. Only addresses, folders and passwords are replaced.
 */
export async function startPatroni (t: Test): Promise<PatroniCluster> {
  const folder = temporaryFolder()
  const account = await accountFor(0)
  const own = async (path: string) => { if (account) await chown(path, account.uid, account.gid) }
  const options = account && { uid: account.uid, gid: account.gid }
  await own(folder)
  const makeFolder = async (name: string) => {
    await mkdir(join(folder, name))
    await own(join(folder, name))
    return join(folder, name)
  }
  const [initdb] = globSync('/usr/lib/postgresql/*/bin/initdb').sort()
  if (!initdb) throw new Error('PostgreSQL is not installed: run scripts/install-release.sh')

  const addresses: Addresses[] = await Promise.all(NAMES.map(async () =>
    ({ postgres: await findPort(), api: await findPort(), client: await findPort(), peer: await findPort() })))
  const ports = { primary: await findPort(), replicas: await findPort() }
  const password = randomBytes(24).toString('hex')

  // Replaces what the files have as examples. Each of them must be there.
  function fill (text: string, more: Readonly<Record<string, string>>): string {
    for (const [what, value] of Object.entries(more)) {
      if (!text.includes(what)) throw new Error(`deploy/patroni has no ${what}`)
      text = text.replaceAll(what, value)
    }
    for (const [index, { postgres, api, client, peer }] of addresses.entries()) {
      const host = `10.0.0.${index + 1}`
      text = text.replaceAll(`${host}:5432 check port 8008`, `127.0.0.1:${postgres} check port ${api}`)
        .replaceAll(`${host}:5432`, `127.0.0.1:${postgres}`).replaceAll(`${host}:8008`, `127.0.0.1:${api}`)
        .replaceAll(`${host}:2379`, `127.0.0.1:${client}`).replaceAll(`${host}:2380`, `127.0.0.1:${peer}`)
    }
    if (/10\.0\.0\.\d/.test(text.replaceAll(/^#.*$/gm, ''))) throw new Error(`an address is left: ${text}`)
    return text
  }

  // Returns the settings of a member. The file is that of the first one.
  async function readEnv (file: string, index: number, more: Readonly<Record<string, string>>) {
    const text = (await read(file)).replaceAll(/^([A-Z_]*(?:_LISTEN|CONNECT_ADDRESS|_URLS)=.*)10\.0\.0\.1:/gm, `$110.0.0.${index + 1}:`)
    return parseEnv(fill(text, { '_NAME=one': `_NAME=${NAMES[index]}`, ...more }))
  }

  const etcds = await Promise.all(addresses.map(async ({ client }, index) => {
    const data = await makeFolder(`etcd-${index}`)
    const env = await readEnv('etcd.env', index, { '/var/lib/etcd/default': join(data, 'data') })
    return runProgram(t, client, ['/usr/bin/etcd'], {
      ...options, cwd: data, env: { ...environment(), ...env, ETCD_LOG_LEVEL: 'error' }, stop: 'SIGKILL',
    })
  }))

  const script = join(folder, 'create-database.sh')
  await writeFile(script, await read('create-database.sh'))
  await chmod(script, 0o755)
  const configuration = join(folder, 'patroni.yaml')
  await writeFile(configuration, fill(await read('patroni.yaml'), {
    '/etc/patroni/create-database.sh': script, '/var/run/postgresql': folder,
  }))
  const authorization = `Basic ${Buffer.from(`patroni:${password}`).toString('base64')}`
  const urlOf = (user: string, ...ports: number[]) =>
    `postgres://${user}:${password}@${ports.map((port) => `127.0.0.1:${port}`).join()}/usher`

  async function startMember ({ postgres, api }: Addresses, index: number): Promise<Member> {
    const home = await makeFolder(`member-${index}`)
    const data = join(home, 'data')
    const proxies: Proxy[] = []
    for (const { client } of addresses) proxies.push(await createProxy(t, `http://127.0.0.1:${client}`))
    const env = await readEnv('member.env', index, {
      '/var/lib/postgresql/15/usher': data,
      '/usr/lib/postgresql/15/bin': initdb!.replace(/\/initdb$/, ''),
      '/var/lib/postgresql/usher.pgpass': join(home, 'pgpass'),
      '<set>': password,
    })
    let child: ChildProcess
    const launch = async () => {
      child = await runProgram(t, api, ['/usr/bin/patroni', configuration], {
        ...options,
        cwd: home,
        env: {
          ...environment(),
          ...env,
          PATRONI_ETCD_HOSTS: proxies.map(({ url }) => new URL(url).host).join(),
          PATRONI_ETCD_USE_PROXIES: 'true',
          PATRONI_LOG_DIR: home,
        },
      })
      // Before the teardown of `runProgram`. PostgreSQL outlives Patroni.
      t.teardown(async () => { signal(await processes(), 'SIGKILL') })
    }
    const postmaster = async () => parseInt(await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => ''))
    const processes = async () => {
      const pid = await postmaster()
      return [...await familyOf(child.pid!), ...Number.isNaN(pid) ? [] : await familyOf(pid)]
    }
    await launch()
    const all = (action: (proxy: Proxy) => unknown) => { for (const proxy of proxies) action(proxy) }
    return {
      name: NAMES[index]!,
      url: urlOf('usher', postgres),
      etcd: { freeze: () => all((proxy) => proxy.freeze()), thaw: () => all((proxy) => proxy.thaw()) },
      query: (text) => query(urlOf('postgres', postgres), text),
      check: (path) => fetch(`http://127.0.0.1:${api}/${path}`, { signal: AbortSignal.timeout(API_MS) })
        .then(({ status }) => status, () => 0),
      log: () => readFile(join(home, 'patroni.log'), 'utf8'),
      async kill () {
        signal(await processes(), 'SIGKILL')
        await until('Patroni has ended', () => child.signalCode !== null)
      },
      start: launch,
      async freeze (what) {
        const pids = what === 'patroni' ? await familyOf(child.pid!) : await processes()
        signal(pids, 'SIGSTOP')
        return () => signal(pids, 'SIGCONT')
      },
    }
  }

  const members: Member[] = []
  for (const [index, address] of addresses.entries()) members.push(await startMember(address, index))
  const clusterOf = async ({ api }: Addresses) => {
    const response = await fetch(`http://127.0.0.1:${api}/cluster`, { signal: AbortSignal.timeout(API_MS) })
    return await response.json() as { members: { role: string, state: string, timeline?: number }[] }
  }
  const post = async (path: string, method: string, body: object, { api }: Addresses) => {
    const response = await fetch(`http://127.0.0.1:${api}/${path}`, {
      method, headers: { authorization, 'content-type': 'application/json' }, body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  }

  async function leader (other?: Member): Promise<Member> {
    for (; ; await delay(50)) {
      const statuses = await Promise.all(members.map((member) => member === other ? 0 : member.check('primary')))
      if (statuses.includes(200)) return members[statuses.indexOf(200)]!
    }
  }

  const cluster: PatroniCluster = {
    url: urlOf('usher', ports.primary),
    replicasUrl: urlOf('usher', ports.replicas),
    direct: urlOf('usher', ...addresses.map(({ postgres }) => postgres)),
    members,
    leader,
    untilWhole: () => until('the cluster is whole', async () => {
      const found = await clusterOf(addresses[members.indexOf(await leader())]!).catch(() => undefined)
      const states = found?.members ?? []
      return states.length === NAMES.length && new Set(states.map(({ timeline }) => timeline)).size === 1 &&
        states.every(({ state }) => state === 'running' || state === 'streaming') &&
        states.some(({ role }) => role === 'leader') && states.some(({ role }) => role === 'sync_standby')
    }, 200),
    async switchover (to) {
      const from = await leader()
      await post('switchover', 'POST', { leader: from.name, candidate: to.name }, addresses[members.indexOf(from)]!)
    },
    async configure (settings) {
      await post('config', 'PATCH', settings, addresses[members.indexOf(await leader())]!)
    },
    freezeEtcd () {
      for (const { pid } of etcds) signal([pid!], 'SIGSTOP')
      return () => { for (const { pid } of etcds) signal([pid!], 'SIGCONT') }
    },
  }
  await cluster.untilWhole()

  const haproxy = join(folder, 'haproxy.cfg')
  await writeFile(haproxy, fill(await read('haproxy.cfg'), {
    'bind 127.0.0.1:5000': `bind 127.0.0.1:${ports.primary}`, 'bind 127.0.0.1:5001': `bind 127.0.0.1:${ports.replicas}`,
  }))
  await runProgram(t, ports.primary, ['/usr/sbin/haproxy', '-db', '-f', haproxy], options)
  await until('HAProxy leads to the primary', async () =>
    (await query(cluster.url, 'select pg_is_in_recovery() as standby').catch(() => [{ standby: true }]))[0]!.standby === false)
  return cluster
}
