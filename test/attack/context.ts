import type { Cast } from './actors.ts'
import type { Findings } from './findings.ts'
import { HttpConnection, type Target } from './http-connection.ts'
import type { Operation } from './operations.ts'
import type { Random } from './random.ts'

/** The data that all lanes of one generator share. */
export interface Shared {
  readonly target: Target
  readonly cast: Cast
  readonly findings: Findings
  readonly operations: readonly Operation[]
  /** Users that an admin of this generator has created and may change and delete. */
  readonly expendable: string[]
  /** Posts with the index of their author, who may change and delete them. */
  readonly posts: { readonly id: string, readonly author: number }[]
  readonly uploads: string[]
}

/** A lane: one sequence of attacks with its own random numbers. */
export class Lane {
  readonly shared: Shared
  /** An address of the loopback network that only this lane uses. */
  readonly address: string
  random: Random
  #connection: HttpConnection | undefined

  constructor (shared: Shared, address: string, random: Random) {
    this.shared = shared
    this.address = address
    this.random = random
  }

  get findings (): Findings { return this.shared.findings }
  get cast (): Cast { return this.shared.cast }

  /** Returns the lane's kept-alive connection, opening it if necessary. Throws `NodeIsDown`. */
  async connection (): Promise<HttpConnection> {
    if (!this.#connection?.isUsable) {
      await this.#connection?.close()
      this.#connection = await this.open()
    }
    return this.#connection
  }

  /** Opens another connection from the lane's address. */
  open (): Promise<HttpConnection> {
    return HttpConnection.open(this.shared.target, this.address)
  }

  async close (): Promise<void> {
    await this.#connection?.close()
  }
}

/** One kind of attack. */
export interface Attack {
  readonly name: string
  /** How often the attack is chosen, relative to the others. */
  readonly weight: number
  run (lane: Lane): Promise<void>
}

/** Returns a name or title that must never appear in the database. */
export const forbiddenMark = (random: Random): string => `deny-${random.word(12)}`
/** Returns the name of a user who may be an admin. */
export const adminMark = (random: Random): string => `may-admin-${random.word(12)}`
