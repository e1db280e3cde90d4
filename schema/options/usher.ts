import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import type { EventHandler, EventName, FailedDelivery } from '../outbox/events.ts'
import type { CreateInvitation, CreateOrganization, PatchOrganization } from '../organizations/organizations.ts'
import type { UsherOrganization, UsherPost } from './hooks.ts'
import type { UsherMetric } from './metrics.ts'
import type { OrganizationAction } from './organizations.ts'
import type { Action, Actor, HostAction, ReadAction, Resource } from './policy.ts'
import type { PatchUpload, Visibility } from '../uploads/upload.ts'
import type { CreateUploadLink } from '../uploads/upload-link.ts'
import type { CreateUser, PatchUser, Role, ShownUser, UsherUser } from '../users/users.ts'
import type { UserFilters } from '../users/user-list.ts'
import type { ChangedFieldValues, NewFieldValues } from '../users/user-fields.ts'

/** A request of any host, also of one with HTTP/2. */
export type AnyRequest = FastifyRequest<any, any, any, any, any, any, any>

/** Who performs an operation of `app.usher`. */
export interface CallOptions {
  /**
   * The actor of a request, on whose behalf the operation runs: the policy decides, and the actor's session must not
   * have ended. Null is somebody without a token, who may do what a request without a token may do. Without this
   * member, the host acts with full permission.
   */
  actor: Actor | null | undefined
}

/** A page of a list, newest first. */
export interface UsherPage<Item> {
  readonly data: Item[]
  readonly page: {
    /** The cursor of the next page, to be passed as `after`, or null if this is the last page. */
    readonly next: string | null
    readonly limit: number
  }
}

/** The page of a list that is requested. */
export interface PageQuery {
  /** The maximum number of items, from 1 to 1,000; by default 100. */
  limit?: number | undefined
  /** The cursor of a page, from the previous page. */
  after?: string | undefined
}

/** A session that has neither ended nor expired. */
export interface UsherSession {
  id: string
  createdAt: Date
  lastUsedAt: Date
  expiresAt: Date
  /** The IP address and the `User-Agent` of the last login or refresh. */
  address: string
  userAgent: string
  /** Whether it is the session of the actor. */
  current: boolean
}

/** What a new session consists of. */
export interface StartedSession {
  /** The access token. Send it as `Authorization: Bearer`. */
  readonly token: string
  /** The value of a `Set-Cookie` header, with which the browser can refresh the session. */
  readonly cookie: string
  /** When the session expires if it is not refreshed. */
  readonly expiresAt: Date
}

/** Where a new session is used. */
export interface StartOptions {
  /**
   * The request of the user. Its address and user agent are recorded, and its protocol decides whether the cookie is
   * `Secure`.
   */
  request?: AnyRequest | undefined
  /**
   * How the host has authenticated the user, as in RFC 8176; by default nothing is known. A user who has a second
   * factor gets a session only if it names `mfa`.
   */
  amr?: readonly string[] | undefined
}

export interface UserOperations {
  /** Creates a user. Throws 400 `INVALID_INPUT` and 409 `EMAIL_TAKEN`. */
  create (user: CreateUser & NewFieldValues): Promise<UsherUser>
  create (user: CreateUser & NewFieldValues, options: CallOptions): Promise<ShownUser>
  /** Returns a user. Throws 404 `USER_NOT_FOUND`. */
  get (id: string): Promise<UsherUser>
  get (id: string, options: CallOptions): Promise<ShownUser>
  /**
   * Returns the user who has an address, regardless of case, or undefined if there is none, or if the actor may not see
   * it.
   */
  find (email: string): Promise<UsherUser | undefined>
  find (email: string, options: CallOptions): Promise<ShownUser | undefined>
  /** Returns a page of users. Throws 400 `INVALID_INPUT`. */
  list (query?: PageQuery & UserFilters): Promise<UsherPage<UsherUser>>
  list (query: PageQuery & UserFilters, options: CallOptions): Promise<UsherPage<ShownUser>>
  /**
   * Changes the members that are given. Throws 400 `INVALID_INPUT`, 404 `USER_NOT_FOUND`, 409 `EMAIL_TAKEN` and
   * `LAST_ADMIN`.
   */
  update (id: string, changes: PatchUser & ChangedFieldValues): Promise<UsherUser>
  update (id: string, changes: PatchUser & ChangedFieldValues, options: CallOptions): Promise<ShownUser>
  /**
   * Deletes a user with their sessions, posts and uploads. Throws 404 `USER_NOT_FOUND`, 409 `LAST_ADMIN` and
   * `USER_IN_USE`.
   */
  delete (id: string, options?: CallOptions): Promise<void>
  /**
   * Returns everything that is stored about a user, as a stream of one JSON document (contract 11.7). Read it or
   * destroy it. An actor must have been authenticated recently. It fails if the user is deleted or the session of the
   * actor ends meanwhile. Throws 403 `STEP_UP_REQUIRED`, 404 `USER_NOT_FOUND`, 429 `TOO_MANY_REQUESTS` while another
   * export by the actor or about the user runs, 503 `OVERLOADED`.
   */
  export (id: string, options?: CallOptions): Promise<Readable>
}

export interface SessionOperations {
  /**
   * Starts a session without a password, for a user whom the host has authenticated. Only the host itself can do that.
   * Throws 404 `USER_NOT_FOUND`, 409 `USER_DISABLED`, and 401 `SECOND_FACTOR_REQUIRED`, whose `challenge` the client
   * completes.
   */
  start (userId: string, options?: StartOptions): Promise<StartedSession>
  /** Returns the sessions of a user. Throws 404 `USER_NOT_FOUND`. */
  list (userId: string, options?: CallOptions): Promise<UsherSession[]>
  /** Ends a session on every node. Throws 404 `SESSION_NOT_FOUND`. */
  end (id: string, options?: CallOptions): Promise<void>
  /** Ends all sessions of a user on every node. Throws 404 `USER_NOT_FOUND`. */
  endAll (userId: string, options?: CallOptions): Promise<void>
}

/** The ways to sign in that a user has. */
export interface UsherCredentials {
  /** Whether the user has a password. */
  password: boolean
  /** The authenticator app, whose code a login needs; null if it needs none. */
  totp: { confirmedAt: Date } | null
  recoveryCodesLeft: number
  /** Newest first. `backedUp` says whether its provider keeps a copy. */
  passkeys: { id: string, name: string, createdAt: Date, lastUsedAt: Date | null, backedUp: boolean }[]
  /** The accounts at providers, newest first. `email` is what the provider gave last, verified or not. */
  identities: { id: string, provider: string, email: string | null, createdAt: Date, lastUsedAt: Date | null }[]
}

/** The tokens of a provider, with which the host acts for a user there. */
export interface UsherProviderTokens {
  accessToken: string
  refreshToken?: string | undefined
  scope?: string | undefined
  expiresAt?: number | undefined
}

export interface CredentialOperations {
  /** Returns the ways to sign in that a user has. Throws 404 `USER_NOT_FOUND`. */
  list (userId: string, options?: CallOptions): Promise<UsherCredentials>
  /** Removes a passkey, and mails the user that it did. Throws 404 `PASSKEY_NOT_FOUND`. */
  removePasskey (userId: string, id: string, options?: CallOptions): Promise<void>
  /** Removes an identity at a provider, and mails the user that it did. Throws 404 `IDENTITY_NOT_FOUND`. */
  removeIdentity (userId: string, id: string, options?: CallOptions): Promise<void>
  /**
   * Returns the tokens that a provider gave at the last login with an identity; undefined if none are stored, which is
   * so without the provider's option `keepTokens`. `expiresAt` is in milliseconds since 1970. Throws 404
   * `IDENTITY_NOT_FOUND`.
   */
  tokensOf (userId: string, id: string): Promise<UsherProviderTokens | undefined>
  /**
   * Removes the authenticator app of a user who has lost it, with the recovery codes, and ends all sessions. Links in
   * mails to the user are void, and the user gets a mail. Throws 404 `USER_NOT_FOUND`.
   */
  resetSecondFactor (userId: string, options?: CallOptions): Promise<void>
}

/** An API key, without its secret. */
export interface UsherApiKey {
  id: string
  name: string
  /** The actions of the policy that it permits; null if it permits all that a key can have. */
  actions: string[] | null
  /** The organisation for which it acts; null for none. */
  organizationId: string | null
  createdAt: Date
  /** Up to two minutes late; null if it was not used yet. */
  lastUsedAt: Date | null
  /** Null if it does not expire. */
  expiresAt: Date | null
}

/** What an API key is created with. */
export interface NewUsherApiKey {
  /** 1 to 100 characters. */
  name: string
  /** Usher's own and those of the option `policy`; without this member, all that a key can have. */
  actions?: readonly (Action | ReadAction | HostAction)[] | undefined
  expiresAt?: Date | string | undefined
  /** The organisation for which it acts, of which the user must be a member. The key ends with the membership. */
  organizationId?: string | undefined
}

export interface ApiKeyOperations {
  /**
   * Creates an API key of a user, who gets a mail. No other operation returns its `key`. Throws 400 `INVALID_INPUT`,
   * 404 `USER_NOT_FOUND` and `ORGANIZATION_NOT_FOUND`, 409 `USER_DISABLED` and `TOO_MANY_API_KEYS`; for an actor also
   * 403 `STEP_UP_REQUIRED` and 409 `NOT_A_SERVICE_USER`.
   */
  create (userId: string, key: NewUsherApiKey, options?: CallOptions): Promise<UsherApiKey & { key: string }>
  /** Returns the keys of a user that have not expired, newest first. Throws 404 `USER_NOT_FOUND`. */
  list (userId: string, options?: CallOptions): Promise<UsherApiKey[]>
  /**
   * Deletes a key, which every node rejects from then on. With `revokeLinks`, the links to uploads that were created
   * with it are revoked. Throws 404 `USER_NOT_FOUND` and `API_KEY_NOT_FOUND`.
   */
  delete (
    userId: string, id: string, options?: (CallOptions | { actor?: never }) & { revokeLinks?: boolean | undefined }
  ): Promise<void>
}

/** A file, without its bytes, which `fileUrl` has. */
export interface UsherUpload {
  id: string
  fileUrl: string
  userId: string
  filename: string
  mediaType: string
  /** Bytes. */
  size: number
  sha256: string
  description: string
  visibility: Visibility
  createdAt: Date
}

/** A link that serves an upload without a token. */
export interface UsherUploadLink {
  id: string
  /** Empty if none was given. */
  name: string
  createdAt: Date
  expiresAt: Date
  /** The id of the user who created it; null if it was the host. */
  createdBy: string | null
  /** The id of the API key with which it was created, which may have been deleted; null without one. */
  keyId: string | null
  /** The name of that key; null if it was deleted, or is not one of the owner of the upload. */
  keyName: string | null
}

export interface UploadLinkOperations {
  /**
   * Creates a link that works for at most seven days. `url` is shown once. Throws 400 `INVALID_INPUT`, 404
   * `UPLOAD_NOT_FOUND` and 409 `TOO_MANY_LINKS`.
   */
  create (
    uploadId: string, link: CreateUploadLink, options?: CallOptions
  ): Promise<UsherUploadLink & { readonly url: string }>
  /** Returns the links of an upload that have not expired, newest first. Throws 404 `UPLOAD_NOT_FOUND`. */
  list (uploadId: string, options?: CallOptions): Promise<UsherUploadLink[]>
  /**
   * Revokes a link, which stops the downloads that it serves on every node. Throws 404 `UPLOAD_NOT_FOUND` and
   * `LINK_NOT_FOUND`.
   */
  revoke (uploadId: string, id: string, options?: CallOptions): Promise<void>
}

/** A post, or a draft of the actor. */
export interface UsherPublication extends UsherPost {
  /** When it was published, the same as `createdAt`; null for a draft. */
  publishedAt: Date | null
  /** When a draft will be published; null if that is not planned, and for a post. */
  publishAt: Date | null
}

/** When a post is published: at once, at a time in the future, or null if that is not planned. */
export type PublicationTime = Date | string | null

export interface PostOperations {
  /**
   * Creates a post, or a draft of the actor. Without an author, it is the actor's own; the host itself has to name one,
   * and has no drafts. Throws 400 `INVALID_INPUT`, 404 `USER_NOT_FOUND` and 409 `TOO_MANY_DRAFTS`.
   */
  create (
    post: {
      title: string, content: string, authorId?: string | undefined, publishedAt?: PublicationTime | undefined,
    }, options?: CallOptions
  ): Promise<UsherPublication>
  /** Returns a post, or a draft of the actor. Throws 404 `POST_NOT_FOUND`. */
  get (id: string, options?: CallOptions): Promise<UsherPublication>
  /** Returns a page of posts, of an author if one is given. A page has at most 100 posts, by default 50. */
  list (
    query?: PageQuery & { author?: string | undefined }, options?: CallOptions
  ): Promise<UsherPage<UsherPublication>>
  /** Returns a page of the drafts of the actor, newest first. A page has at most 100 drafts, by default 50. */
  listDrafts (query: PageQuery | undefined, options: CallOptions): Promise<UsherPage<UsherPublication>>
  /**
   * Changes the members that are given, and publishes a draft of the actor or plans when. Throws 400 `INVALID_INPUT`,
   * 404 `POST_NOT_FOUND`, and 409 `ALREADY_PUBLISHED` if a post would become a draft.
   */
  update (
    id: string,
    changes: { title?: string | undefined, content?: string | undefined, publishedAt?: PublicationTime | undefined },
    options?: CallOptions
  ): Promise<UsherPublication>
  /** Deletes a post, or a draft of the actor. Throws 404 `POST_NOT_FOUND`. */
  delete (id: string, options?: CallOptions): Promise<void>
}

export interface UploadOperations {
  /** Returns the record of an upload. Throws 404 `UPLOAD_NOT_FOUND`. */
  get (id: string, options?: CallOptions): Promise<UsherUpload>
  /**
   * Returns a page of the uploads of a user. Without a user, it returns those of the actor, or of all users if the host
   * itself asks or `user` is `all`.
   */
  list (query?: PageQuery & { user?: string | undefined }, options?: CallOptions): Promise<UsherPage<UsherUpload>>
  /** Changes the members that are given. Throws 400 `INVALID_INPUT` and 404 `UPLOAD_NOT_FOUND`. */
  update (id: string, changes: PatchUpload, options?: CallOptions): Promise<UsherUpload>
  /** Deletes an upload and its file. Throws 404 `UPLOAD_NOT_FOUND`. */
  delete (id: string, options?: CallOptions): Promise<void>
  readonly links: Readonly<UploadLinkOperations>
}

/** An organisation of a user, with the user's role in it. */
export interface UsherOwnOrganization extends UsherOrganization {
  role: string
  /** The id of the membership. With another role it is another one. */
  membershipId: string
}

/** A member of an organisation. */
export interface UsherMember {
  /** The id of the membership. With another role it is another one. */
  id: string
  userId: string
  name: string
  /** Absent if the actor may not see it. */
  email?: string | undefined
  role: string
  /** Absent like `email`. */
  disabled?: boolean | undefined
  createdAt: Date
}

/** An invitation to an organisation that is pending, without the secret in its mail. */
export interface UsherInvitation {
  id: string
  email: string
  role: string
  /** The id of the user who has invited; null if it was the host. */
  invitedBy: string | null
  createdAt: Date
  expiresAt: Date
}

/** All throw 404 `ORGANIZATION_NOT_FOUND`, also for an actor who is no member. */
export interface MemberOperations {
  /** Returns a member. Throws 404 `MEMBERSHIP_NOT_FOUND`. */
  get (organizationId: string, userId: string, options?: CallOptions): Promise<UsherMember>
  /** Returns a page of the members, in the order in which their accounts were created. Throws 400 `INVALID_INPUT`. */
  list (
    organizationId: string, query?: PageQuery & { role?: string | undefined, q?: string | undefined },
    options?: CallOptions
  ): Promise<UsherPage<UsherMember>>
  /**
   * Adds a user without an invitation, which only the host and admins of the service may. Throws 400 `INVALID_INPUT`,
   * 404 `USER_NOT_FOUND`, 409 `USER_DISABLED`, `ALREADY_MEMBER`, `TOO_MANY_MEMBERS` and `TOO_MANY_ORGANIZATIONS`.
   */
  add (organizationId: string, member: { userId: string, role: string }, options?: CallOptions): Promise<UsherMember>
  /**
   * Gives a member another role, which is another membership: tokens and API keys for the former one end on every node.
   * Throws 400 `INVALID_INPUT`, 404 `MEMBERSHIP_NOT_FOUND`, 409 `LAST_OWNER`.
   */
  update (
    organizationId: string, userId: string, changes: { role: string }, options?: CallOptions
  ): Promise<UsherMember>
  /** Ends the membership of a user on every node. Throws 404 `MEMBERSHIP_NOT_FOUND`, 409 `LAST_OWNER`. */
  remove (organizationId: string, userId: string, options?: CallOptions): Promise<void>
}

/** All throw 404 `ORGANIZATION_NOT_FOUND`, also for an actor who is no member. */
export interface InvitationOperations {
  /**
   * Sends an invitation to an address, which replaces the pending one for it. Throws 400 `INVALID_INPUT`, 409
   * `ALREADY_MEMBER` and `TOO_MANY_INVITATIONS`, 503 `NO_MAILER`; for an actor also 429 `TOO_MANY_REQUESTS`.
   */
  create (organizationId: string, invitation: CreateInvitation, options?: CallOptions): Promise<UsherInvitation>
  /** Returns a page of the pending invitations, newest first. Throws 400 `INVALID_INPUT`. */
  list (organizationId: string, query?: PageQuery, options?: CallOptions): Promise<UsherPage<UsherInvitation>>
  /** Withdraws an invitation. Throws 404 `INVITATION_NOT_FOUND`. */
  withdraw (organizationId: string, id: string, options?: CallOptions): Promise<void>
}

/** All reject with an `Error` in a mount without the option `organizations`. */
export interface OrganizationOperations {
  /**
   * Founds an organisation. Its owner is the actor, or the user who is named, for whom only the host and admins of the
   * service may found one. Throws 400 `INVALID_INPUT`, 404 `USER_NOT_FOUND`, 409 `SLUG_TAKEN`, `USER_DISABLED` and
   * `TOO_MANY_ORGANIZATIONS`; for an actor also 403 `EMAIL_NOT_VERIFIED`.
   */
  create (
    organization: CreateOrganization & { ownerId?: string | undefined }, options?: CallOptions
  ): Promise<UsherOrganization>
  /** Returns an organisation. Throws 404 `ORGANIZATION_NOT_FOUND`, also for an actor who is no member. */
  get (id: string, options?: CallOptions): Promise<UsherOrganization>
  /**
   * Returns a page of all organisations, newest first, or of those whose name or slug begins with `q`. Only the host
   * and admins of the service may do it. Throws 400 `INVALID_INPUT`.
   */
  list (
    query?: PageQuery & { q?: string | undefined }, options?: CallOptions
  ): Promise<UsherPage<UsherOrganization>>
  /** Returns the organisations of a user with the user's role in each, the one joined last first. */
  listOf (userId: string, options?: CallOptions): Promise<UsherOwnOrganization[]>
  /** Changes the members that are given. Throws 400 `INVALID_INPUT`, 404 `ORGANIZATION_NOT_FOUND`, 409 `SLUG_TAKEN`. */
  update (id: string, changes: PatchOrganization, options?: CallOptions): Promise<UsherOrganization>
  /**
   * Deletes an organisation with its memberships, which end on every node. Throws 404 `ORGANIZATION_NOT_FOUND`, 409
   * `ORGANIZATION_IN_USE`; for an actor also 403 `STEP_UP_REQUIRED`.
   */
  delete (id: string, options?: CallOptions): Promise<void>
  readonly members: Readonly<MemberOperations>
  readonly invitations: Readonly<InvitationOperations>
}

/** The deliveries of events that were given up after three days. */
export interface EventOperations {
  /**
   * Returns up to `limit` of them, by default 100, oldest first, after the one with the id `after`. They are kept for
   * 30 days.
   */
  failed (query?: { limit?: number | undefined, after?: string | undefined }): Promise<FailedDelivery[]>
  /** Delivers one again, with new attempts for three days. Returns whether there is one with that id. */
  retry (id: string): Promise<boolean>
}

// TypeScript infers the types of a route from those of its hooks. So these name none of Fastify's types with
// parameters: with `any` in them, the body of a route with a type provider would be unknown. They are declared as
// methods, so that functions that need more of a request are assignable.
interface GuardedRequest { readonly ip: string, readonly url: string }
interface GuardedReply { readonly sent: boolean }
interface HostFunctions {
  guard (request: GuardedRequest, reply: GuardedReply): Promise<void>
  errorHandler (error: any, request: GuardedRequest, reply: GuardedReply): unknown
}

/** A hook for routes of a host, of any type provider and of any server. */
export type Guard = HostFunctions['guard']

/** Returns what a request is about, such as `{ ownerId }`, if the rule of the policy depends on it. */
export type ResourceOf = (request: AnyRequest) => Resource

export interface AllowOptions {
  resourceOf?: ResourceOf | undefined
  /**
   * How many seconds ago the user must have been authenticated at most. A token that is older gets 403
   * `STEP_UP_REQUIRED` (RFC 9470): the client gets another one from POST /api/auth/step-up.
   */
  maxAge?: number | undefined
}

/** The one decorator that a host gets. */
export interface Usher {
  /**
   * An `onRequest` hook that sets `request.actor` to the user behind the bearer token or the API key. If there is no
   * valid one, it sets `WWW-Authenticate` and throws an error with a `statusCode` of 401 and a `code` (contract 1.5). A
   * route that reads a body uses it as its `preHandler` as well, because the session may end while the body arrives
   * (contract 1.12). An API key with a list of actions gets 403, because the route names no action: use `allow`.
   */
  readonly authenticate: Guard
  /**
   * As `authenticate`, but a request without a token passes, and `request.actor` remains null, also for an API key with
   * a list of actions. An invalid token is still a 401.
   */
  readonly identify: Guard
  /**
   * Returns an `onRequest` hook that authenticates the request and checks the policy: 401 or 403 if the action is not
   * permitted. The action is one of Usher's, or one of the host's own, which the option `policy` defines.
   * @param options a function is its `resourceOf`
   */
  allow (action: Action | ReadAction | HostAction, options?: ResourceOf | AllowOptions): Guard
  /**
   * Returns an `onRequest` hook that authenticates the request: 403 unless the actor has the role. Admins have every
   * role.
   */
  requireRole (role: Role): Guard
  /**
   * Returns an `onRequest` hook that authenticates the request: 403 `ORGANIZATION_REQUIRED` unless the token or the API
   * key is for an organisation, which `request.actor.organization` names, and 403 `FORBIDDEN` unless the actor's role
   * in it has the action (option `organizations`). Throws an `Error` in a mount without that option.
   */
  requireOrganization (action?: Action | HostAction | OrganizationAction): Guard
  /**
   * An error handler that sends errors as Usher's routes do, `{ error, code }`, and of a failure only that it has
   * happened (contract 1.3): `app.setErrorHandler(app.usher.errorHandler)`.
   */
  readonly errorHandler: HostFunctions['errorHandler']
  /** The PostgreSQL schema of Usher's tables. */
  readonly schema: string
  readonly users: Readonly<UserOperations>
  readonly sessions: Readonly<SessionOperations>
  readonly credentials: Readonly<CredentialOperations>
  readonly apiKeys: Readonly<ApiKeyOperations>
  readonly posts: Readonly<PostOperations>
  readonly uploads: Readonly<UploadOperations>
  readonly organizations: Readonly<OrganizationOperations>
  /**
   * Calls a handler for every event of these names: at least once, and in order per subject, on one of the nodes that
   * have the handler (contract 12.5). An event is delivered again if the handler throws or takes longer than 30
   * seconds. Throws an `Error` if a name is unknown or taken.
   *
   * @param options its `name` identifies the handler on all nodes and across restarts. By default it consists of the
   * names of the events
   */
  on<Name extends EventName> (names: Name |
    readonly Name[], handler: EventHandler<Name>, options?: { name?: string | undefined }): void
  readonly events: Readonly<EventOperations>
  /**
   * Returns what this mount measures, with the present values (contract 14.2). It takes half a second at most, and may
   * be called as often as a monitoring system asks.
   */
  metrics (): Promise<UsherMetric[]>
}
