import {
  withoutProtected, writerOf as writerOfActor, type UserFields, type Writer,
} from '../../schema/users/user-fields.ts'
import { EmailsHidden } from '../../schema/users/users.ts'
import type { Caller } from '../access/caller.ts'

// The body of a request is authorized before it is validated, because 403 comes before 400 (contract 1.7).
type Given = { role?: unknown, disabled?: unknown }
const membersOf = (given: unknown): Given => (given ?? {}) as Given

/**
 * Returns the relation of a caller to the record of a user, or to a new user without `id`. The host may write every
 * field, like an admin.
 */
export function writerOf ({ isHost, actor }: Caller, id?: string): Writer {
  if (isHost) return 'admin'
  return actor ? writerOfActor(actor, id) : 'other'
}

/**
 * Returns an input without the fields of the host that a caller may not write (contract 12.3). Call it before the input
 * is validated: the values of fields that are ignored do not matter. Whatever is no object is returned as it is.
 * @param id the user who is changed, or undefined for a new one
 */
export function withoutIgnored (fields: UserFields, caller: Caller, given: unknown, id?: string): unknown {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given
  return withoutProtected(fields, given, writerOf(caller, id))
}

/** Throws `Unauthenticated` or `Forbidden` if a caller may not give a new user the role in `given`. */
export function authorizeNewRole (caller: Caller, given: unknown): void {
  const { role = 'user' } = membersOf(given)
  if (role !== 'user') caller.authorizeGrant(role)
}

/**
 * Throws `Unauthenticated` or `Forbidden` if a caller may not create this user. Granting a role takes a permission of
 * its own. Throws `EmailsHidden` for a caller who may not see the addresses of others, because a conflict would tell
 * that an address is taken.
 */
export function authorizeCreation (caller: Caller, given?: unknown): void {
  caller.authorize('users:create')
  if (!caller.allows('users:read-email')) throw new EmailsHidden()
  authorizeNewRole(caller, given)
}

/** Throws `Unauthenticated` or `Forbidden` if a caller who may replace a user may not set these members. */
export function authorizeMembers (caller: Caller, id: string, given: unknown): void {
  const { role, disabled } = membersOf(given)
  const isOwn = caller.actor?.id === id.toLowerCase()
  if (role !== undefined && !(isOwn && role === caller.actor.role)) caller.authorizeGrant(role)
  // Disabling and enabling are one permission, which users do not have over their own record. Actors are not disabled,
  // so in their own record `false` changes nothing, and a response can be sent back.
  if (disabled !== undefined && !(isOwn && disabled === false)) caller.authorize('users:disable', { ownerId: id.toLowerCase() })
}

/**
 * Returns whether a caller may give roles, or disable users, without `users:replace`: because the role of the actor
 * lists it (contract 20.1). With `users:replace`, a moderator could also give users another address, and take over
 * their accounts.
 */
export const hasListedChange = (caller: Caller): boolean =>
  caller.isListed('users:grant-role') || caller.isListed('users:disable')

/**
 * Throws `Unauthenticated` or `Forbidden` if a caller may change nothing of a user. What depends on the body, such as
 * `authorizeChange`, is asked when it has arrived.
 */
export function authorizeSomeChange (caller: Caller, id: string): void {
  if (!hasListedChange(caller)) caller.authorize('users:replace', { ownerId: id.toLowerCase() })
}

/** Throws `Unauthenticated` or `Forbidden` if a caller may not change a user like this. */
export function authorizeChange (caller: Caller, id: string, given: unknown): void {
  const { role, disabled, ...others } = membersOf(given)
  const isListed = Object.values(others).every((value) => value === undefined) &&
    (role !== undefined || disabled !== undefined) &&
    (role === undefined || caller.isListed('users:grant-role')) &&
    (disabled === undefined || caller.isListed('users:disable'))
  if (!isListed) caller.authorize('users:replace', { ownerId: id.toLowerCase() })
  authorizeMembers(caller, id, given)
}
