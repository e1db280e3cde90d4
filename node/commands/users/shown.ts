import { toAsciiAddress } from '../../../schema/strings/address.ts'
import { isUuid } from '../../../db/driver/postgres.ts'
import type { Database, UserRow } from '../../../db/tables/index.ts'
import { findUsers, findUsersByEmail } from '../../../db/users/users.ts'
import { User } from '../../../schema/users/users.ts'
import { formatRecord } from '../table.ts'

/** Returns a user as commands show it to programs: what an admin gets from the API. */
export function showUser ({ rowVersion, ...user }: UserRow): Omit<UserRow, 'rowVersion'> {
  return user
}

/** Returns a user as commands show it to people. */
export const describeUser = (user: UserRow): string => formatRecord(showUser(user))

/** No user has the id or the address that an operator has given. */
export class UnknownUser extends Error {}

/** Returns the user with an id or an address. Throws `UnknownUser` with a sentence if there is none. */
export async function findUser (db: Database, given: string): Promise<UserRow> {
  const email = toAsciiAddress(given)
  const emails = email.includes('\0') ? [] : [email]
  const [user] = isUuid(given) ? await findUsers(db, [given]) : await findUsersByEmail(db, emails)
  if (!user) throw new UnknownUser(`There is no user ${given}.`)
  return user
}

/** Returns how tables name users: by address, or by id if the user no longer exists. */
export async function nameUsers (db: Database, ids: readonly (string |
  null)[]): Promise<(id: string | null) => string | null> {
  const users = await findUsers(db, [...new Set(ids)].filter((id) => id !== null))
  const emails = new Map(users.map((user) => [user?.id, user?.email]))
  return (id) => id && (emails.get(id) ?? id)
}

/** The shape of a user, for `--help`. */
export const USER = `{ ${Object.keys(User.properties).join(', ')} }`
