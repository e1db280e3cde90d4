import type { Readable } from 'node:stream'
import { defineError } from '../http/errors.ts'
import type { Actor } from './policy.ts'
import type { Visibility } from '../uploads/upload.ts'
import type { CreateUser, PatchUser, UsherUser } from '../users/users.ts'
import type { NewOrganizationFieldValues, OrganizationFieldValues } from '../organizations/organization-fields.ts'
import type { ChangedFieldValues, NewFieldValues } from '../users/user-fields.ts'

/**
 * What performs an operation: a request to a route, an operation of GraphQL, the host through `app.usher`, a sign-up
 * and the use of its link, the use of another link of a mail, or the start of a node that creates the first admin.
 */
export type CallSource =
  'rest' | 'graphql' | 'api' | 'sign-up' | 'sign-up-confirmation' | 'mail-link' | 'first-admin' | 'command' |
  'provider'

/** What a hook knows about the operation. */
export interface HookContext {
  /** The user who performs the operation. Null if it is the host, or somebody without a token. */
  readonly actor: Actor | null
  readonly via: CallSource
  /** Aborts when the time of the hooks is over. The operation has failed then. */
  readonly signal: AbortSignal
}

/** What a hook that changes a user knows. */
export interface UpdateContext extends HookContext {
  /** The user before the change. */
  readonly user: UsherUser
}

/** What a hook inside a transaction knows. */
export interface TransactionContext extends HookContext {
  /**
   * Runs a statement in the transaction and resolves with its rows. Values in the template are bound as parameters.
   * Statements that begin or end a transaction are rejected, and so is everything after the hook has ended.
   */
  readonly sql: <Row extends object = Record<string, unknown>>(
    text: TemplateStringsArray, ...values: unknown[]
  ) => Promise<Row[]>
}

/** A post to be created. */
export interface HookPost { title: string, content: string, authorId: string }

/** An upload to be kept. A hook may change its name, its description and who may read it. */
export interface HookUpload {
  filename: string
  description: string
  visibility: Visibility
  readonly userId: string
  readonly mediaType: string
  /** Bytes. */
  readonly size: number
  readonly sha256: string
}

/** An upload that is complete, and that nobody can read yet. */
export interface ScannedUpload extends Readonly<HookUpload> { readonly id: string }

/** A post as it is stored. */
export interface UsherPost {
  id: string
  authorId: string
  title: string
  content: string
  createdAt: Date
}

/** An organisation to be founded. */
export type HookOrganization = { name: string, slug: string } & NewOrganizationFieldValues

/** An organisation without the fields of the host. */
interface OwnMembers { id: string, name: string, slug: string, createdAt: Date, updatedAt: Date }

/** An organisation as it is stored, with the fields that the host has registered. */
export type UsherOrganization = OwnMembers & OrganizationFieldValues

/** An organisation as an actor sees it, who may not see every field. */
export type ShownOrganization = OwnMembers & Partial<OrganizationFieldValues>

/** A user who is about to become a member of an organisation. */
export interface HookMember { organizationId: string, userId: string, role: string }

type Changed<Input> = Input | undefined | void
type MayChange<Input, Context = HookContext> =
  (input: Input, context: Context) => Changed<Input> | Promise<Changed<Input>>
type MayReject<Input, Context = HookContext> = (input: Input, context: Context) => void | Promise<void>

/**
 * The hooks of a host. Those that begin with `before` run before anything is written; they may return a changed input.
 * Those that begin with `on` run inside the transaction. Throwing rejects the operation: an error with a `statusCode`
 * from 400 to 499 is the response to the client, with its message and its `code`; anything else is a 500 and logged.
 */
export interface Hooks {
  /** Without a password, the user gets a link to set one, or has one already, as when a sign-up is confirmed. */
  beforeUserCreate?: MayChange<CreateUser & NewFieldValues> | undefined
  beforeUserUpdate?: MayChange<PatchUser & ChangedFieldValues, UpdateContext> | undefined
  beforeUserDelete?: MayReject<UsherUser> | undefined
  /** Runs when the password is right, and before the session starts. */
  beforeLogin?: MayReject<UsherUser> | undefined
  beforePostCreate?: MayChange<HookPost> | undefined
  beforeUploadKeep?: MayChange<HookUpload> | undefined
  /**
   * Gets the bytes of an upload that is complete, before anybody can read them. If it throws, or takes longer than
   * `scan.seconds`, nobody ever can. It need not read all of them.
   */
  beforeUploadPublish?:
    ((bytes: Readable, upload: ScannedUpload, context: HookContext) => void | Promise<void>) | undefined
  beforeOrganizationCreate?: MayChange<HookOrganization> | undefined
  beforeOrganizationDelete?: MayReject<UsherOrganization> | undefined
  /** Runs also for the founder, whose organisation does not exist yet, and when an invitation is accepted. */
  beforeMemberAdd?: MayReject<HookMember> | undefined
  onUserCreate?: MayReject<UsherUser, TransactionContext> | undefined
  /** Gets the user after the change. */
  onUserUpdate?: MayReject<UsherUser, TransactionContext> | undefined
  /** Runs before the row is deleted, so that the host can delete rows that refer to it. */
  onUserDelete?: MayReject<UsherUser, TransactionContext> | undefined
  /** Runs before the row is inserted, because every new post waits for the transaction from then on. */
  onPostCreate?: MayReject<UsherPost, TransactionContext> | undefined
}

export type HookName = keyof Hooks

const names: Record<HookName, true> = {
  beforeUserCreate: true,
  beforeUserUpdate: true,
  beforeUserDelete: true,
  beforeLogin: true,
  beforePostCreate: true,
  beforeUploadKeep: true,
  beforeUploadPublish: true,
  beforeOrganizationCreate: true,
  beforeOrganizationDelete: true,
  beforeMemberAdd: true,
  onUserCreate: true,
  onUserUpdate: true,
  onUserDelete: true,
  onPostCreate: true,
}

export const HookTimeout = defineError('HOOK_TIMEOUT', 'The server did not finish in time, try again', 503)

/** Returns the option `hooks`. Throws an `Error` if it is invalid. */
export function readHooks (given: unknown = {}): Hooks {
  if (typeof given !== 'object' || given === null) throw new Error('usher: hooks must be an object')
  for (const [name, hook] of Object.entries(given)) {
    if (!Object.hasOwn(names, name)) {
      throw new Error(`usher: hooks has no hook ${name}: there are ${Object.keys(names).join(', ')}`)
    }
    if (hook !== undefined && typeof hook !== 'function') {
      throw new Error(`usher: hooks must have a function for ${name}`)
    }
  }
  return Object.freeze({ ...given })
}
