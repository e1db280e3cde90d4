import { sql, type RawBuilder } from 'kysely'

// The indexes of db/migrations/0001.ts have these expressions, so do not change them without a migration.
// None of them depends on the locale of the database (docs/decisions/performance.md).

/** The key of users sorted by address. */
export const emailKey = keyOfEmail(sql`email`)

/** Returns the key of an address, which is ASCII. It is the same for all spellings that differ in case only. */
export function keyOfEmail (email: RawBuilder<unknown>): RawBuilder<string> {
  return sql`lower(${email} collate "C")`
}

/**
 * Returns the key by which mails to an address are limited that nobody has verified, as `foldMailbox` does
 * (`schema/strings/address.ts`).
 */
export function keyOfMailbox (email: RawBuilder<unknown>): RawBuilder<string> {
  return sql`regexp_replace(${keyOfEmail(email)}, '^([^+@]+)[+][^@]*@', '\\1+@')`
}

/** Returns a condition: two addresses differ in case only, or not at all. */
export function isSameEmail (one: RawBuilder<unknown>, other: RawBuilder<unknown>): RawBuilder<boolean> {
  return sql`${keyOfEmail(one)} = ${keyOfEmail(other)}`
}

/** Returns a condition for a row: its column `email` has this address, regardless of case. */
export function hasEmail (email: string, column: RawBuilder<unknown> = sql`email`): RawBuilder<boolean> {
  return isSameEmail(column, sql`${email}::text`)
}

/**
 * Returns a text that is equal for all spellings that differ in case or in their Unicode normalization only, in the
 * order of code points.
 */
export function foldText (schema: string, text: RawBuilder<unknown>): RawBuilder<string> {
  return sql`(${sql.id(schema, 'fold_text')}(${text}) collate "C")`
}

/** Returns the key of a name. It is cut, because an entry of an index has a maximum size. */
export function keyOfName (schema: string, name: RawBuilder<unknown>): RawBuilder<string> {
  return sql`left(${foldText(schema, name)}, 200)`
}

/** Returns the key of users sorted by name, in which searches look for words as well. */
export function nameKey (schema: string): RawBuilder<string> {
  return keyOfName(schema, sql`name`)
}

// What stands between words: white space, punctuation and symbols. Classes such as [:alnum:] depend on the locale: with
// the locale C, no letter outside ASCII is one.
const SEPARATORS = [
  // ASCII and Latin-1, without the letters and digits.
  '\\u0001-\\u002f\\u003a-\\u0040\\u005b-\\u0060\\u007b-\\u00a9\\u00ab-\\u00b1\\u00b4\\u00b6-\\u00b8\\u00bb',
  '\\u00bf\\u00d7\\u00f7',
  // Armenian, Hebrew, Arabic, Devanagari, Tibetan, Georgian, Ethiopic and Khmer punctuation.
  '\\u055a-\\u055f\\u0589\\u05be\\u05c0\\u05c3\\u060c\\u061b\\u061f\\u066a-\\u066d\\u06d4',
  '\\u0964\\u0965\\u0f0b-\\u0f12\\u10fb\\u1361-\\u1368\\u17d4-\\u17da',
  // General punctuation without the joiners within words, currencies, and symbols from arrows to dingbats.
  '\\u2000-\\u200b\\u200e-\\u206f\\u20a0-\\u20cf\\u2190-\\u245f\\u2500-\\u2bff\\u2e00-\\u2e7f',
  // Chinese and Japanese punctuation, also in vertical, small, full and half width.
  '\\u3000-\\u3004\\u3008-\\u3020\\u3030\\u303d-\\u303f\\u30fb\\ufe10-\\ufe1f\\ufe30-\\ufe6f\\ufeff',
  '\\uff01-\\uff0f\\uff1a-\\uff20\\uff3b-\\uff40\\uff5b-\\uff65\\uffe0-\\uffff',
  // Emoji and other pictographs.
  '\\U0001f000-\\U0001faff',
].join('')

/** Returns the words of a folded text, as an array. */
export const splitWords = (text: RawBuilder<unknown>): RawBuilder<string[]> =>
  sql`array_remove(regexp_split_to_array(${text}, ${sql.lit(`[${SEPARATORS}]+`)}), '')`

/** Returns the words of a key, as a search vector. */
export function wordsOf (key: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`array_to_tsvector(${splitWords(key)})`
}

/** Returns a search for keys that have all words of `q`, the last of which may be a prefix. Null without a word. */
export function searchFor (schema: string, q: string): RawBuilder<unknown> {
  const given = splitWords(foldText(schema, sql`${q}::text`))
  return sql`(select string_agg('''' || word || '''' || case when place = total then ':*' else '' end, ' & ')::tsquery
    from (select word, place, count(*) over () as total
      from unnest(${given}) with ordinality words(word, place)) words)`
}

/** Returns whether a key has `q` at its beginning or at that of a word. */
function hasPrefix (schema: string, key: RawBuilder<unknown>, q: string): RawBuilder<boolean> {
  // What a backslash precedes is literal, unless it is a letter or digit. A mark may turn a sign into another one, so
  // it is composed first.
  const literal = q.normalize('NFC').replace(/[!-/:-@[-`{-~]/g, '\\$&')
  // A subquery, because PostgreSQL would otherwise fold `q` for each row.
  return sql`${key} ~ (select ${sql.lit(`(^|[${SEPARATORS}])`)} || ${foldText(schema, sql`${literal}::text`)})`
}

/**
 * Returns a condition: a search finds a key. Without a letter or digit, it finds nothing, because the index has words
 * only.
 */
export function isFoundBy (schema: string, key: RawBuilder<unknown>, q: string): RawBuilder<boolean> {
  return sql`(${searchFor(schema, q)} is not null and ${hasPrefix(schema, key, q)})`
}
