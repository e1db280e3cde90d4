import type { TokenFactory, Subject } from './tokens.ts'

/** A user that the harness has logged in. */
export interface Account extends Subject {
  readonly email: string
  readonly password: string
}

/** The accounts and ids that the main process prepares for the generators. */
export interface World {
  readonly admin: Account
  /** An admin with a live session, for whom generators only send tokens that must be rejected. */
  readonly decoy: Account
  /** Live sessions of users without special permissions. */
  readonly members: readonly Account[]
  /** Users who log in again and again, which ends their earlier sessions. */
  readonly logins: readonly Account[]
  /** Accounts without live sessions: logged out, deleted or demoted. */
  readonly ended: Readonly<Record<string, Subject>>
  /** Accounts that an attack may log in at any time. It ends the sessions that it has begun. */
  readonly disposableAdmins: readonly Account[]
  /** Users that no permitted request changes. They must be unchanged at the end. */
  readonly victims: readonly string[]
  readonly victimPosts: readonly string[]
  readonly victimSessions: readonly string[]
  readonly victimUploads: readonly string[]
  /** The id of an author of 100 posts of 65,000 characters each. */
  readonly longWinded: string
  /** The ids of users that are only read. */
  readonly readers: readonly string[]
}

/** The sender of a request, as the policy sees it. */
export interface Actor {
  readonly kind: string
  /** Whether the node must accept the token. */
  readonly isLive: boolean
  readonly id?: string
  readonly role?: string
  /** The value of the `Authorization` header, or undefined to send none. */
  readonly authorization?: string
}

const RENEW_MS = 240_000
const anonymous: Actor = { kind: 'anonymous', isLive: false }

/** Creates actors. Signs their tokens again before they expire. */
export class Cast {
  readonly world: World
  readonly tokens: TokenFactory
  readonly #known = new Map<string, { actor: Actor, until: number }>()
  #forged: { actors: Actor[], until: number } = { actors: [], until: 0 }
  // In seconds since 1970.
  readonly #start = Math.floor(Date.now() / 1000)

  constructor (world: World, tokens: TokenFactory) {
    this.world = world
    this.tokens = tokens
  }

  get anonymous (): Actor { return anonymous }
  get admin (): Actor { return this.#live('admin', this.world.admin) }

  member (index: number): Actor {
    const { members } = this.world
    return this.#live('member', members[index % members.length]!)
  }

  /** Returns all actors whose tokens must be rejected. */
  get rejected (): readonly Actor[] {
    if (Date.now() > this.#forged.until) this.#forged = { actors: this.#forge(), until: Date.now() + RENEW_MS }
    return this.#forged.actors
  }

  #live (kind: string, { id, role, sessionId }: Account): Actor {
    const known = this.#known.get(id)
    if (known && Date.now() < known.until) return known.actor
    const actor = { kind, isLive: true, id, role, authorization: `Bearer ${this.tokens.sign({ id, role, sessionId })}` }
    this.#known.set(id, { actor, until: Date.now() + RENEW_MS })
    return actor
  }

  #forge (): Actor[] {
    const { decoy, members, ended } = this.world
    const forged = Object.entries(this.tokens.forge(decoy, members[0]!))
      .map(([kind, token]) => [kind, `Bearer ${token}`])
    // No node signs a token for a session that has ended. These tokens are therefore not renewed and expire, like real
    // ones.
    const over = Object.entries(ended)
      .map(([kind, subject]) => [kind, `Bearer ${this.tokens.sign(subject, { from: this.#start })}`])
    const schemes = [['basic', 'Basic YWRtaW46YWRtaW4='], ['no scheme', this.tokens.sign(decoy)]]
    return [...forged, ...over, ...schemes]
      .map(([kind, authorization]) => ({ kind: kind!, isLive: false, authorization: authorization! }))
  }
}
