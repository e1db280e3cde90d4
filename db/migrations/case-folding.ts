import { sql, type Kysely } from 'kysely'
import { PROGRAM } from '../../schema/runtime/program.ts'
import type { IndexesOf } from './indexes.ts'
import { StartError } from '../driver/start-errors.ts'
import type { Tables } from '../tables/index.ts'
import { emailKey, keyOfEmail, nameKey, wordsOf } from '../users/user-keys.ts'
import { defineLimitMail } from './mail-limits.ts'

const SHOWN = 10

/**
 * Makes the uniqueness of addresses and the lists of users independent of the locale of the database (contract 2.3,
 * 10.5): with `lower(email)`, a Turkish one permits INFO@example.com beside info@example.com, and the locale C knows no
 * letters outside ASCII. The indexes that these replace remain where nodes of the previous release may serve.
 */
export const foldCases = {
  beforehand: createFoldText, indexes: foldedIndexes, afterwards: foldMailboxes, whenUnused: dropReplaced,
}

// Each costs every new user time. The unique one stays, because statements of the previous release name it.
const replaced = ['users_name', 'users_role_name', 'users_role_email', 'users_words', 'sign_ups_email']

async function dropReplaced (db: Kysely<Tables>, schema: string): Promise<void> {
  for (const index of replaced) await sql`drop index ${sql.id(schema, index)}`.execute(db)
}

// The letters outside ASCII that have a lower case of one character, with that. Those that only some languages fold, or
// that have another form at the end of a word, are folded as well.
function lowerCases (): Record<string, string> {
  const folded: Record<string, string> = {}
  for (let code = 0x80; code < 0x20000; code++) {
    const letter = String.fromCodePoint(code)
    const lower = letter.toLowerCase()
    if (lower !== letter) folded[letter] = lower
  }
  return { ...folded, İ: 'i', ı: 'i', ς: 'σ', ſ: 's' }
}

/**
 * Creates the function that folds names. No collation of PostgreSQL does that on every server: "C" folds ASCII only,
 * those of ICU are absent from some builds, and `pg_c_utf8` before PostgreSQL 17. Its results change with none of them,
 * so an index that uses it stays valid. `replace` for each capital is faster than `translate`, which searches all.
 */
async function createFoldText (db: Kysely<Tables>, schema: string): Promise<void> {
  const folded = lowerCases()
  const capital = sql.lit(`[${Object.keys(folded).join('')}]`)
  // PL/pgSQL, because PostgreSQL would copy the text of an SQL function into every plan.
  await sql`
    create or replace function ${sql.id(schema, 'fold_text')}(given text) returns text
    language plpgsql immutable strict parallel safe as $$
    declare
      folded text collate "C";
      letter text;
    begin
      if octet_length(given) = length(given) then
        return lower(given collate "C");
      end if;
      folded := lower(normalize(given, NFC) collate "C");
      letter := substring(folded from ${capital});
      while letter is not null loop
        folded := replace(folded, letter, ${sql.lit(JSON.stringify(folded))}::jsonb ->> letter);
        letter := substring(folded from ${capital});
      end loop;
      -- A capital I with a dot is a plain i, however it is written. Small letters may compose where capitals do not.
      return normalize(replace(folded, U&'i\\0307', 'i'), NFC);
    end $$`.execute(db)
}

function foldedIndexes (schema: string): ReturnType<IndexesOf> {
  const users = sql.id(schema, 'users')
  const name = nameKey(schema)
  return [
    {
      name: 'users_folded_email',
      on: sql`${users} (${emailKey})`,
      explainDuplicates: (db) => explainDuplicates(db, schema),
    },
    { name: 'users_role_folded_email', on: sql`${users} (role, ${emailKey})` },
    { name: 'users_folded_name', on: sql`${users} (${name}, id)` },
    { name: 'users_role_folded_name', on: sql`${users} (role, ${name}, id)` },
    { name: 'users_folded_words', on: sql`${users} using gin ((${wordsOf(name)}), (${wordsOf(emailKey)}))` },
    { name: 'sign_ups_folded_email', on: sql`${sql.id(schema, 'sign_ups')} (${emailKey})` },
  ]
}

async function explainDuplicates (db: Kysely<Tables>, schema: string): Promise<Error | undefined> {
  const { rows } = await sql<{ users: string }>`
    select string_agg(email || ' (' || id || ')', ' and ' order by id) as users from ${sql.id(schema, 'users')}
    group by ${emailKey} having count(*) > 1 order by 1 limit ${SHOWN + 1}`.execute(db)
  if (rows.length === 0) return undefined
  const shown = rows.slice(0, SHOWN).map(({ users }) => users).join('; ')
  return new StartError(`several users of the schema "${schema}" have the same address but for upper and lower case, ` +
    `which the locale of the database has permitted until now: ${shown}${rows.length > SHOWN ? '; and others' : ''}. ` +
    'With the previous release, give all but one of them another address, or delete them, for example by ' +
    `"${PROGRAM} users delete <id>". Then start again`)
}

// Both also hold for nodes of the previous release.
async function foldMailboxes (db: Kysely<Tables>, schema: string): Promise<void> {
  const [former, current] = [keyOfEmail(sql`old.email`), keyOfEmail(sql`new.email`)]
  await sql`
    create or replace trigger mailbox_changed before update of email on ${sql.id(schema, 'users')}
    for each row when (${former} <> ${current}) execute function ${sql.id(schema, 'mailbox_changed')}()`.execute(db)
  await defineLimitMail(schema, { replace: 'or replace', keyOf: (text) => `lower(${text} collate "C")` }).execute(db)
}
