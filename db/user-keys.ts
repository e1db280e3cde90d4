import { sql, type RawBuilder } from 'kysely'

// The indexes of migrations/user-lists.ts have these expressions, so do not change them without a migration.

/** The key of users sorted by name, regardless of case and in the order of code points, which is the same on every server. */
export const nameKey = keyOfName(sql`name`)

/** The name in which searches look for words. With the collation "C", letters outside ASCII would not be letters. */
export const searchedName = sql`left(lower(name), 200)`

/** The key of users sorted by address. The index `users_email` has the same expression. */
export const emailKey = keyOfEmail(sql`email`)

/** Returns the key of a name. It is cut, because an entry of an index has a maximum size. */
export function keyOfName (name: RawBuilder<unknown>): RawBuilder<string> {
  return sql`(left(lower(${name}), 200) collate "C")`
}

/** Returns the key of an address. */
export function keyOfEmail (email: RawBuilder<unknown>): RawBuilder<string> {
  return sql`lower(${email})`
}

const splitWords = (text: RawBuilder<unknown>) => sql`array_remove(regexp_split_to_array(${text}, '[^[:alnum:]]+'), '')`

/** Returns the words of a text in lower case, as a search vector. A word consists of letters and digits. */
export function wordsOf (text: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`array_to_tsvector(${splitWords(text)})`
}

/** Returns a search for texts that have all words of `q`, the last of which may be the prefix of one. Null without a word. */
export function searchFor (q: string): RawBuilder<unknown> {
  return sql`(select string_agg('''' || word || '''' || case when place = total then ':*' else '' end, ' & ')::tsquery
    from (select word, place, count(*) over () as total from unnest(${splitWords(sql`lower(${q}::text)`)}) with ordinality words(word, place)) words)`
}

/** Returns whether a text has `q` at its beginning or at that of a word. */
export function hasPrefix (key: RawBuilder<unknown>, q: string): RawBuilder<boolean> {
  // What a backslash precedes is literal, unless it is a letter or digit.
  const literal = q.replace(/[!-/:-@[-`{-~]/g, '\\$&')
  return sql`${key} ~ ('(^|[^[:alnum:]])' || lower(${literal}::text))`
}
