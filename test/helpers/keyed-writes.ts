import { setTimeout as delay } from 'node:timers/promises'
import type { Sql } from 'postgres'
import { until } from './until.ts'

/** A user or a post that a client creates with an idempotency key, and repeats until there is a response. */
interface KeyedWrite {
  readonly kind: 'user' | 'post'
  /** The email address or the title, which is also the key. */
  readonly name: string
  attempts: number
  /** The first successful response. */
  outcome?: string
}

const CREATE_POST =
  'mutation ($title: String!) { createPost(input: { title: $title, content: "Words" }) { id title createdAt } }'
const TIMEOUT_MS = 30_000
const PAUSE_MS = 20

/**
 * Clients that create users and posts, each with a key, and repeat a request until it succeeds, whatever dies
 * meanwhile.
 */
export class KeyedWrites {
  readonly writes: KeyedWrite[] = []
  /** Responses that differ from the first one to the same request, and unexpected ones. */
  readonly faults: string[] = []
  readonly #headers: Record<string, string>
  readonly #urlOf: () => string
  #stopped = false

  /** `urlOf` returns where the next request is sent. */
  constructor (urlOf: () => string, headers: Record<string, string>) {
    this.#urlOf = urlOf
    this.#headers = headers
  }

  /** Creates users and posts until `stop`, and resolves when each of them was acknowledged. */
  async run (clients: number): Promise<void> {
    await Promise.all(Array.from({ length: clients }, async (_, index) => {
      while (!this.#stopped) {
        const kind = index % 2 === 0 ? 'user' : 'post'
        const write: KeyedWrite = {
          kind,
          name: kind === 'user' ? `${crypto.randomUUID()}@example.org` : `Post ${crypto.randomUUID()}`,
          attempts: 0,
        }
        this.writes.push(write)
        while (!await this.send(write)) await delay(PAUSE_MS)
      }
    }))
  }

  stop (): void {
    this.#stopped = true
  }

  /** Resolves when `count` more writes were acknowledged. */
  async acknowledge (count: number): Promise<void> {
    const acknowledged = () => this.writes.filter(({ outcome }) => outcome).length
    const wanted = acknowledged() + count
    await until(`${wanted} acknowledged writes`, () => acknowledged() >= wanted, PAUSE_MS)
  }

  /** Sends a write. Returns whether it succeeded. */
  async send (write: KeyedWrite): Promise<boolean> {
    const { kind, name } = write
    write.attempts++
    const [path, payload] = kind === 'user'
      ? ['/api/users', { name: 'Load', email: name }]
      : ['/graphql', { query: CREATE_POST, variables: { title: name } }]
    try {
      const response = await fetch(`${this.#urlOf()}${path}`, {
        method: 'POST',
        headers: {
          ...this.#headers, 'content-type': 'application/json', 'idempotency-key': `"${name.replaceAll(' ', '-')}"`,
        },
        body: JSON.stringify(payload),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      const body = await response.text()
      const code = /"code":"(\w+)"/.exec(body)?.[1]
      if (code !== undefined && ['DATABASE_UNAVAILABLE', 'OVERLOADED', 'IDEMPOTENCY_KEY_IN_USE'].includes(code)) {
        return false
      }
      const outcome = `${response.status} ${body} ${response.headers.get('location')}`
      if (code !== undefined || outcome !== (write.outcome ?? outcome)) {
        this.faults.push(`${outcome}, after ${write.outcome}`)
      }
      write.outcome ??= outcome
      return true
    } catch {
      return false
    }
  }

  /**
   * Repeats every write once more, and returns what is wrong: other responses, and records that do not exist exactly
   * once.
   */
  async check (sql: Sql): Promise<string[]> {
    for (let index = 0; index < this.writes.length; index += 20) {
      await Promise.all(this.writes.slice(index, index + 20)
        .map(async (write) => { while (!await this.send(write)) await delay(PAUSE_MS) }))
    }
    const rows = await sql<{ name: string }[]>`
      select email as name from users where email like '%@example.org' union all select title from posts where title like 'Post %'`
    const counts = new Map<string, number>()
    for (const { name } of rows) counts.set(name, (counts.get(name) ?? 0) + 1)
    const miscounted = this.writes.filter(({ name }) => counts.get(name) !== 1)
      .map(({ name }) => `${name} exists ${counts.get(name) ?? 0} times`)
    const [{ audited }] = await sql<[{
      audited: number
    }]>`select count(*)::int as audited from audit inner join users on users.id = audit.user_id
      where action = 'user.create' and email like '%@example.org'`
    const users = this.writes.filter(({ kind }) => kind === 'user').length
    return [...this.faults, ...miscounted, ...audited === users
      ? []
      : [`${audited} entries of the account log for ${users} users`]]
  }
}
