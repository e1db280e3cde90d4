import { sql } from 'kysely'
import type { Migrations } from '../../db/migrations/index.ts'

/**
 * Migrations that a next release could have: indexes of a table that is in use, which need a function, and a table that
 * a trigger fills, whichever release writes. test/release/upgrade.release.ts adds this file to a copy of the tree.
 */
export const nextMigrations: Migrations = {
  '9001-next-indexes': {
    beforehand: (schema) => sql`
      create or replace function ${sql.id(schema)}.next_key(given text) returns text
      language sql immutable strict as 'select left(given, 20)'`,
    indexes: (schema) => [
      { name: 'next_users_created', on: sql`${sql.id(schema)}.users (created_at, id)` },
      { name: 'next_users_key', on: sql`${sql.id(schema)}.users (${sql.id(schema)}.next_key(name))` },
    ],
    afterwards: (schema) => sql`comment on index ${sql.id(schema)}.next_users_key is 'it is there'`,
  },
  '9002-next-notes': (schema) => sql`
    create table ${sql.id(schema)}.next_notes (upload_id uuid primary key);
    create function ${sql.id(schema)}.next_note() returns trigger language plpgsql as $$
    begin
      insert into ${sql.id(schema)}.next_notes values (new.id);
      return null;
    end $$;
    create trigger next_note after insert on ${sql.id(schema)}.uploads
    for each row execute function ${sql.id(schema)}.next_note()`,
}
