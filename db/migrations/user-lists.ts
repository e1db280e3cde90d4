import { sql, type RawBuilder } from 'kysely'
import type { IndexesOf } from './indexes.ts'

const nameKey = sql`(left(lower(name), 200) collate "C")`

const wordsOf = (text: RawBuilder<unknown>) =>
  sql`array_to_tsvector(array_remove(regexp_split_to_array(${text}, '[^[:alnum:]]+'), ''))`

/** The indexes of sorted and searched lists of users (contract 10.5), until `case-folding.ts`. */
export const userListIndexes: IndexesOf = (schema) => [
  { name: 'users_name', on: sql`${sql.id(schema, 'users')} (${nameKey}, id)` },
  { name: 'users_role_name', on: sql`${sql.id(schema, 'users')} (role, ${nameKey}, id)` },
  { name: 'users_role_email', on: sql`${sql.id(schema, 'users')} (role, lower(email))` },
  {
    name: 'users_words',
    on: sql`${sql.id(schema, 'users')} using gin (
      (${wordsOf(sql`left(lower(name), 200)`)}), (${wordsOf(sql`lower(email)`)}))`,
  },
]
