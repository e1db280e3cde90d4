import { writerOf as writerOfActor, type Writer } from '../../schema/users/user-fields.ts'
import { EmailsHidden } from '../../schema/users/user.ts'
import type { Caller } from '../auth/caller.ts'

// The body of a request is authorized before it is validated, because 403 comes before 400 (contract 1.7).
type Given = { role?: unknown, disabled?: unknown }
const membersOf = (given: unknown): Given => (given ?? {}) as Given

/** Returns the relation of a caller to the record of a user, or to a new user without `id`. The host may write every field, like an admin. */
export function writerOf ({ isHost, actor }: Caller, id?: string): Writer {
  if (isHost) return 'admin'
  return actor ? writerOfActor(actor, id) : 'other'
}

/**
 * Throws `Unauthenticated` or `Forbidden` if a caller may not create this user. Granting a role takes a permission of
 * its own. Throws `EmailsHidden` for a caller who may not see the addresses of others, because a conflict would tell
 * that an address is taken.
 */
export function authorizeCreation (caller: Caller, given: unknown): void {
  caller.authorize('users:create')
  if (!caller.allowsReading('users:read-email')) throw new EmailsHidden()
  const { role = 'user' } = membersOf(given)
  if (role !== 'user') caller.authorize('users:grant-role')
}

/** Throws `Unauthenticated` or `Forbidden` if a caller may not change a user like this. */
export function authorizeChange (caller: Caller, id: string, given: unknown): void {
  const { role, disabled } = membersOf(given)
  const isOwn = caller.actor?.id === id.toLowerCase()
  caller.authorize('users:replace', id.toLowerCase())
  if (role !== undefined && !(isOwn && role === caller.actor.role)) caller.authorize('users:grant-role')
  // Disabling and enabling are one permission, which users do not have over their own record. Actors are not disabled, so in their
  // own record `false` changes nothing, and a response can be sent back.
  if (disabled !== undefined && !(isOwn && disabled === false)) caller.authorize('users:disable', id.toLowerCase())
}
