import { sql } from 'kysely'
import type { IndexesOf } from '../migration-indexes.ts'
import { emailKey, nameKey, searchedName, wordsOf } from '../user-keys.ts'

/** The indexes of sorted and searched lists of users (contract 10.5). The list by address uses the unique index `users_email`. */
export const userListIndexes: IndexesOf = (schema) => [
  { name: 'users_name', on: sql`${sql.id(schema, 'users')} (${nameKey}, id)` },
  { name: 'users_role_name', on: sql`${sql.id(schema, 'users')} (role, ${nameKey}, id)` },
  { name: 'users_role_email', on: sql`${sql.id(schema, 'users')} (role, ${emailKey})` },
  { name: 'users_words', on: sql`${sql.id(schema, 'users')} using gin ((${wordsOf(searchedName)}), (${wordsOf(emailKey)}))` },
]
