import { foldEmail } from '../../schema/strings/address.ts'
import type { Database } from '../../db/tables/index.ts'
import type { Changes } from '../../db/users/update-user.ts'
import type { Caller } from '../access/caller.ts'
import { requireSession } from '../access/policy.ts'
import type { MailLinks } from '../mail-links/index.ts'
import type { Throttle } from '../throttle/throttle.ts'
import type { UserRecords } from '../users/user-records.ts'

interface Dependencies extends Pick<MailLinks, 'verificationLinks'> {
  throttle: Throttle
  users: UserRecords
}

/**
 * Creates a function that returns the changes that take effect at once, and what else their transaction stores. An
 * actor who may not see the addresses of others must not learn whether somebody has one, as a conflict would tell. So a
 * new address of such an actor takes effect when a link that is sent to it is used (contract 11.3). It throws
 * `UserNotFound`, `NoMailer`, `TooManyRequests`, and `SessionRequired` for an API key. `isWanted` defers it for
 * everybody.
 */
export function createDeferEmail ({ users, verificationLinks: links, throttle }: Dependencies) {
  return async function deferEmail (
    caller: Caller, id: string, { email, ...others }: Changes, isWanted = false
  ): Promise<{ changes: Changes, sendLink?: (trx: Database) => Promise<void> }> {
    const given = { changes: { ...email !== undefined && { email }, ...others } }
    if (email == null || (caller.allows('users:read-email') && !isWanted)) return given
    const { client, actor } = caller
    const user = await users.get(id, client)
    // Only for those who see the present address. To others it would say whether a guess is right.
    if (caller.allows('users:read-email', { ownerId: user.id }) && foldEmail(email) === foldEmail(user.email)) return given
    const sendLink = links.prepare(caller, user.id, { email, sessionId: requireSession(actor!) })
    await throttle.verification({ userId: user.id, client })
    return { changes: others, sendLink }
  }
}
