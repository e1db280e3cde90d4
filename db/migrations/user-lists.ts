import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables.ts'
import { emailKey, nameKey, searchedName, wordsOf } from '../user-keys.ts'

/**
 * Creates the indexes of sorted and searched lists of users (contract 10.5). The list by address uses the unique index `users_email`. On a
 * large table this takes a while, during which users cannot be changed.
 */
export async function indexUserLists (db: Kysely<Tables>): Promise<void> {
  await db.schema.createIndex('users_name').on('users').expression(sql`${nameKey}, id`).execute()
  await db.schema.createIndex('users_role_name').on('users').expression(sql`role, ${nameKey}, id`).execute()
  await db.schema.createIndex('users_role_email').on('users').expression(sql`role, ${emailKey}`).execute()
  await db.schema.createIndex('users_words').on('users').using('gin').expression(sql`(${wordsOf(searchedName)}), (${wordsOf(emailKey)})`).execute()
}
