import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from './client.ts'
import type { RegisterOperation } from './history.ts'

const REGISTERS = 6
const CLIENTS = 8
const PAUSE_MS = 10
const WRITES = 0.4
const READ = 'query ($id: ID!) { user(id: $id) { name } }'

/** Clients that read and change the names of a few users on all nodes, and record each operation. */
export class RegisterClients {
  readonly operations: RegisterOperation[] = []
  readonly #client: Client
  readonly #headers: Record<string, string>
  readonly #registers: { id: string, email: string }[] = []
  #written = 0
  #stopped = false

  constructor (client: Client, headers: Record<string, string>) {
    this.#client = client
    this.#headers = headers
  }

  /** The ids of the users. */
  get users (): string[] {
    return this.#registers.map(({ id }) => id)
  }

  /** Creates the users. */
  async prepare (): Promise<void> {
    while (this.#registers.length < REGISTERS) {
      const [email, name] = [`${randomUUID()}@example.com`, this.#nextValue()]
      const { body, ...exchange } = await this.#client.send(
        0, 'POST', '/api/users', { headers: this.#headers, body: { name, email } }
      )
      this.#registers.push({ id: body.id, email })
      this.operations.push({ ...exchange, status: 200, kind: 'write', register: body.id, value: name })
    }
  }

  async run (): Promise<void> {
    await Promise.all(Array.from({ length: CLIENTS }, async () => {
      for (; !this.#stopped; await delay(PAUSE_MS)) {
        const { id, email } = this.#registers[Math.floor(Math.random() * REGISTERS)]!
        const node = Math.floor(Math.random() * this.#client.nodeCount)
        await (Math.random() < WRITES ? this.#write(node, id, email) : this.#read(node, id))
      }
    }))
  }

  stop (): void {
    this.#stopped = true
  }

  async #write (node: number, register: string, email: string): Promise<void> {
    const value = this.#nextValue()
    const { body: _, ...exchange } = await this.#client.send(
      node, 'PUT', `/api/users/${register}`, { headers: this.#headers, body: { name: value, email } }
    )
    this.operations.push({ ...exchange, kind: 'write', register, value })
  }

  // Reads use both REST and GraphQL, because each has its own statements.
  async #read (node: number, register: string): Promise<void> {
    const isGraphql = Math.random() < 0.3
    const { body, ...exchange } = isGraphql
      ? await this.#client.send(node, 'POST', '/graphql', { body: { query: READ, variables: { id: register } } })
      : await this.#client.send(node, 'GET', `/api/users/${register}`)
    const value = isGraphql ? body?.data?.user?.name : body?.name
    if (exchange.status === 200 && value) this.operations.push({ ...exchange, kind: 'read', register, value })
  }

  #nextValue (): string {
    return `Name ${this.#written++}`
  }
}
