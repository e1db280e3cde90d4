import type { FastifyBaseLogger } from 'fastify'
import type { Client } from '../../db/batching/batching.ts'
import type { WriterToken } from '../../db/access/live-tokens.ts'
import type { ClientInfo } from '../../db/access/sessions.ts'
import type { UserRow } from '../../db/tables/index.ts'
import { Unauthenticated } from '../../schema/sign-in/login.ts'
import type { CallSource } from '../../schema/options/hooks.ts'
import type { Action, Actor, ReadAction, Resource } from '../../schema/options/policy.ts'
import { denialOf, requireSession, type AccessPolicy, type UserView } from './policy.ts'

/** What a caller asks: the policy, and whether the token and the session of the actor have not ended. */
export interface CallerAccess {
  readonly policy: Pick<AccessPolicy, 'allows' | 'hasRoleOfHost' | 'isListed' | 'mayGrant' | 'mayManage' | 'viewOf' | 'wholeView'>
  tokenOf (actor: Actor): WriterToken
  isStillAllowed (actor: Actor, client?: Client): boolean | Promise<boolean>
  /** Returns the error of an actor who may not act any more. */
  endOf (actor: Actor, client?: Client): Promise<Error>
}

/** What is known about a caller when the operation begins. The request may be gone when the operation ends. */
export interface CallerDetails extends ClientInfo {
  /** The user who is authenticated, or null without one. */
  readonly actor: Actor | null
  /** Whether the host itself acts, with full permission and without an actor. */
  readonly isHost?: boolean
  readonly via: CallSource
  /** The header `Accept-Language` of the request; empty if there was none. */
  readonly acceptLanguage?: string
  /**
   * The connection of the request. Undefined if the operation has no connection, so that it is completed in any case.
   */
  readonly client?: Client | undefined
  readonly log: FastifyBaseLogger
  /** Is called when the policy denies an operation for the first time, where nobody else records rejections. */
  readonly onDenied?: ((caller: Caller) => void) | undefined
}

// Somebody without an account has nothing to confirm, and a list of GraphQL may ask for hundreds of rows.
const CONFIRMED = Promise.resolve()

/**
 * Who performs an operation, and from where: a user, the host itself, or somebody who is not authenticated. As the
 * client of a write, it rejects the write if the user may not act any more when it is sent, or has disconnected.
 */
export class Caller implements Client, CallerDetails {
  readonly actor: Actor | null
  readonly isHost: boolean
  readonly via: CallSource
  readonly client: Client | undefined
  /** The client's address and user agent, for the account log. */
  readonly address: string
  readonly userAgent: string
  readonly acceptLanguage: string
  readonly log: FastifyBaseLogger
  readonly #access: CallerAccess
  readonly #onDenied: CallerDetails['onDenied']
  // The error of each action that the policy has denied. A list of GraphQL may ask for each of its rows, and creating
  // an error takes longer than everything else about them.
  #denials: Map<string, Error> | undefined

  constructor (
    { actor, isHost = false, via, client, address, userAgent, acceptLanguage = '', log, onDenied }: CallerDetails,
    access: CallerAccess
  ) {
    this.actor = actor
    this.isHost = isHost
    this.via = via
    this.client = client
    this.address = address
    this.userAgent = userAgent
    this.acceptLanguage = acceptLanguage
    this.log = log
    this.#access = access
    this.#onDenied = onDenied
  }

  /** The token of the user, with which a write checks that the user may still act. Null without a user. */
  get token (): WriterToken | null {
    return this.actor && this.#access.tokenOf(this.actor)
  }

  get destroyed (): boolean {
    return this.client?.destroyed ?? false
  }

  /**
   * Returns whether the caller may still act. Somebody without an account, such as the owner of a token of a mail,
   * always may.
   */
  isStillAllowed (): boolean | Promise<boolean> {
    return this.actor === null || this.#access.isStillAllowed(this.actor, this.client)
  }

  /**
   * Checks again, right before a change takes effect, that the caller may still act: authentication ran when the head
   * of the request arrived, and its body may have taken a while (contract 1.12). It costs a statement only on a node
   * that does not receive notifications. Throws `InvalidToken`, `MembershipEnded`, `DatabaseUnavailable`.
   */
  confirm (): Promise<void> {
    return this.actor === null ? CONFIRMED : this.#confirmActor(this.actor)
  }

  async #confirmActor (actor: Actor): Promise<void> {
    if (!await this.isStillAllowed()) throw await this.#access.endOf(actor, this.client)
  }

  /** Returns the actor. Throws `Unauthenticated` if there is none. */
  getActor (): Actor {
    if (!this.actor) throw new Unauthenticated()
    return this.actor
  }

  /**
   * Returns the header `Accept-Language` of a user who gets a mail, if the caller is that user or somebody without an
   * account, who uses a link of a mail or asks for one. It is undefined for mails that an admin or the host causes,
   * whose language says nothing about that of the user.
   */
  languageOf (userId?: string): string | undefined {
    const isOther = this.actor !== null && this.actor.id !== userId?.toLowerCase()
    return this.isHost || isOther ? undefined : this.acceptLanguage
  }

  /**
   * Returns the actor with the session. Throws `Unauthenticated` if there is none, and `SessionRequired` for an API
   * key.
   */
  getSession (): { id: string, sessionId: string } {
    const actor = this.getActor()
    return { id: actor.id, sessionId: requireSession(actor) }
  }

  /** Throws `Unauthenticated` unless the caller is a user or the host. */
  requireIdentity (): void {
    if (!this.isHost) this.getActor()
  }

  /**
   * Returns whether the policy permits an action. The host may do everything, somebody without an account at most
   * read.
   * @param organization the organisation for which the actor acts, where that was read rather than taken from the token
   */
  allows (action: Action | ReadAction, resource?: Resource, organization?: Actor['organization']): boolean {
    if (this.isHost) return true
    const actor = this.actor && organization !== undefined ? { ...this.actor, organization } : this.actor
    return this.#access.policy.allows(actor, action, resource)
  }

  /** Throws `Unauthenticated` or `Forbidden` if the policy does not permit an action. */
  authorize (action: Action | ReadAction, resource?: Resource, organization?: Actor['organization']): void {
    if (!this.allows(action, resource, organization)) throw this.#deny(action)
  }

  /** Returns whether the role of the actor lists an action, see `AccessPolicy`. */
  isListed (action: Action): boolean {
    return !this.isHost && this.#access.policy.isListed(this.actor, action)
  }

  /** Throws `Unauthenticated` or `Forbidden` if the caller may not give somebody a role (contract 20.1). */
  authorizeGrant (role: unknown): void {
    this.authorize('users:grant-role')
    if (this.actor && !this.#access.policy.mayGrant(this.actor, role)) throw this.#deny('users:grant-role')
  }

  /**
   * Returns whether the caller has power over the account of a user, where the policy permits an action: a role of the
   * host gives none over users who may do more (contract 20.1).
   */
  hasPowerOver ({ id, role }: Pick<UserRow, 'id' | 'role'>): boolean {
    return !this.actor || this.actor.id === id || this.#access.policy.mayManage(this.actor, role)
  }

  /**
   * Throws `Forbidden` if the caller has no power over the account of a user. What is changed asks it with the user
   * locked, because the user may get another role at that moment.
   */
  authorizeOver (user: Pick<UserRow, 'id' | 'role'>, action: Action): void {
    if (!this.hasPowerOver(user)) throw this.#deny(action)
  }

  /** Returns whether `authorizeOver` needs to know the role of a user. */
  get hasRoleOfHost (): boolean {
    return this.actor !== null && this.#access.policy.hasRoleOfHost(this.actor)
  }

  /** The actions that the policy has denied to the caller, the first one first. */
  get denied (): readonly string[] {
    return [...this.#denials?.keys() ?? []]
  }

  #deny (action: string): Error {
    if (!this.#denials) {
      this.#denials = new Map()
      this.#onDenied?.(this)
    }
    const denial = this.#denials.get(action) ?? denialOf(this.actor, action)
    this.#denials.set(action, denial)
    return denial
  }

  /** Returns how the caller sees a user. It asks the policy, so ask for it once. */
  viewOf (userId: string): UserView {
    const { policy } = this.#access
    return this.isHost ? policy.wholeView : policy.viewOf(this.actor, userId)
  }
}
