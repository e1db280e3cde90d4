import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'
import { userState } from '../users/user-states.ts'
import type { IndexesOf } from './indexes.ts'

/**
 * Lets lists of users be filtered by any combination of what concerns their accounts in a few milliseconds (contract
 * 18.2): one index has the state of each user. Whether somebody has an authenticator app is a column for that, which a
 * trigger sets, whichever release writes. The former indexes remain where nodes of the previous release may serve.
 */
export const addUserStates = { beforehand: addApps, indexes: stateIndexes, whenUnused: dropReplaced }

const replaced = ['users_disabled', 'users_service', 'users_verified']

function stateIndexes (schema: string): ReturnType<IndexesOf> {
  return [{ name: 'users_state', on: sql`${sql.id(schema, 'users')} (${userState}, id)` }]
}

async function dropReplaced (db: Kysely<Tables>, schema: string): Promise<void> {
  for (const index of replaced) await sql`drop index ${sql.id(schema, index)}`.execute(db)
}

// It runs again if a build of the index has failed.
async function addApps (db: Kysely<Tables>, schema: string): Promise<void> {
  const [users, totp, setHasApp] = [sql.id(schema, 'users'), sql.id(schema, 'totp'), sql.id(schema, 'set_has_app')]
  await sql`alter table ${users} add column if not exists has_app boolean not null default false`.execute(db)
  // It is not part of the record, so it gives it no other version.
  await sql`
    create or replace trigger renew_row_version before update on ${users}
    for each row when (old.has_app = new.has_app) execute function ${sql.id(schema, 'renew_row_version')}()`.execute(db)
  // A transaction that writes to `totp` has locked the user before, so two of them cannot block each other here.
  await sql`
    create or replace function ${setHasApp}() returns trigger language plpgsql as $$
    begin
      if tg_op <> 'INSERT' then
        update ${users} set has_app = false where id = old.user_id and has_app and not exists (
          select from ${totp} where user_id = old.user_id and confirmed_at is not null);
      end if;
      if tg_op <> 'DELETE' and new.confirmed_at is not null then
        update ${users} set has_app = true where id = new.user_id and not has_app;
      end if;
      return null;
    end $$`.execute(db)
  await sql`
    create or replace trigger set_has_app after insert or delete or update of user_id, confirmed_at on ${totp}
    for each row execute function ${setHasApp}()`.execute(db)
  await sql`
    update ${users} set has_app = true from ${totp} as app
    where app.user_id = users.id and app.confirmed_at is not null and not has_app`.execute(db)
}
