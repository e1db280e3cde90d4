import { sql, type RawBuilder } from 'kysely'
import { channelOf } from '../driver/channel.ts'
import { emailKey, keyOfName } from '../users/user-keys.ts'
import { hasRoleOfHost, userState } from '../users/user-states.ts'
import type { MigrationIndex } from './indexes.ts'
import type { Migration } from './migration.ts'

/** What the migration does for one capability. Statements end with semicolons. */
interface Part {
  /** What the indexes need. It may run more than once. */
  beforehand? (s: RawBuilder<unknown>): RawBuilder<unknown>
  /** Indexes of tables that exist, which are built first. */
  indexes? (s: RawBuilder<unknown>): readonly MigrationIndex[]
  change (s: RawBuilder<unknown>, schema: string): RawBuilder<unknown>
}

/**
 * The roles of a host (contract 20.1). Which names there are depends on its options, so only their shape is checked.
 * Every row meets the new condition, because it has met the former one, so none is read to validate it.
 */
const roles: Part = {
  indexes: (s) => [
    // Nodes of 0.1.0 list users by the index users_state, whose only roles are `admin` and others. Of a service without
    // roles of the host, this one is empty.
    { name: 'users_role_state', on: sql`${s}.users (role, ${userState}, id) where ${hasRoleOfHost}` },
  ],
  change: (s) => sql`
alter table ${s}.users drop constraint users_role_check,
  add constraint users_role_check check (role ~ '^[a-z][a-z0-9-]{0,39}$') not valid;
`,
}

/** Organisations, their members and invitations (contract 19). */
const organizations: Part = {
  change (s, schema) {
    const channel = sql.lit(channelOf(schema, 'session_ended'))
    return sql`
create table ${s}.organizations (
  id uuid primary key,
  name text not null,
  slug text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  row_version bigint not null default uuid_hash_extended(gen_random_uuid(), 0)
);
create unique index organizations_slug on ${s}.organizations (slug);
create index organizations_name on ${s}.organizations (${keyOfName(schema, sql`name`)} text_pattern_ops, id);
create trigger renew_row_version before update on ${s}.organizations
for each row execute function ${s}.renew_row_version();
create trigger erase_results after delete on ${s}.organizations referencing old table as old_rows
for each statement execute function ${s}.erase_results();

create table ${s}.memberships (
  id uuid primary key,
  organization_id uuid not null references ${s}.organizations on delete cascade,
  user_id uuid not null references ${s}.users on delete cascade,
  role text not null,
  created_at timestamptz not null default clock_timestamp()
);
create unique index memberships_member on ${s}.memberships (organization_id, user_id);
create index memberships_user on ${s}.memberships (user_id);
create index memberships_role on ${s}.memberships (organization_id, role, user_id);

-- A token for an organisation is valid as long as the membership that it names. When that ends, however its row is
-- deleted, or is replaced by one with another role, all nodes get the notification of an ended session.
create function ${s}.membership_ended() returns trigger language plpgsql as $$
begin
  insert into ${s}.ended_sessions (id) values (old.id) on conflict do nothing;
  perform pg_notify(${channel}, old.id::text);
  return null;
end $$;
create trigger membership_ended after delete on ${s}.memberships
for each row execute function ${s}.membership_ended();
create trigger membership_replaced after update of id on ${s}.memberships
for each row when (old.id <> new.id) execute function ${s}.membership_ended();

create table ${s}.organization_invitations (
  id uuid primary key,
  hash bytea not null unique,
  organization_id uuid not null references ${s}.organizations on delete cascade,
  email text not null,
  role text not null,
  -- An invitation is void when its inviter is gone, or is no member any more.
  invited_by uuid references ${s}.users on delete cascade,
  membership_id uuid references ${s}.memberships on update cascade on delete cascade,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null
);
create unique index organization_invitations_email on ${s}.organization_invitations (organization_id, ${emailKey});
create index organization_invitations_expires_at on ${s}.organization_invitations (expires_at);
create index organization_invitations_membership on ${s}.organization_invitations (membership_id);
create index organization_invitations_inviter on ${s}.organization_invitations (invited_by);
`
  },
}

/** What acts for an organisation: tokens and API keys (contract 19.3), and entries of the account log. */
const access: Part = {
  beforehand: (s) => sql`
alter table ${s}.api_keys add column if not exists membership_id uuid;
`,
  indexes: (s) => [{
    name: 'api_keys_membership', on: sql`${s}.api_keys (membership_id) where membership_id is not null`,
  }],
  change: (s) => sql`
-- The same as before, and an id may also be that of a membership, for which a token was issued.
create or replace function ${s}.require_live_sessions(ids uuid[], kids text[], until timestamptz)
returns boolean language plpgsql set enable_seqscan = off as $$
begin
  if cardinality(array_remove(ids, null)) > 0 and (
    clock_timestamp() >= until
    or (select count(*) from ${s}.signing_keys where id = any(kids)) < cardinality(kids)
    or exists (
      select from unnest(ids) as given(id)
      left join lateral (
        select true as is_live from ${s}.sessions where sessions.id = given.id limit 1
      ) session on true
      left join lateral (
        select true as is_live from ${s}.api_keys where session.is_live is null and api_keys.id = given.id limit 1
      ) api_key on true
      left join lateral (
        select true as is_live from ${s}.memberships
        where session.is_live is null and api_key.is_live is null and memberships.id = given.id limit 1
      ) membership on true
      where given.id is not null and session.is_live is null and api_key.is_live is null and membership.is_live is null
    )
  ) then
    raise exception 'a session has ended' using errcode = 'UE401';
  end if;
  return true;
end $$;

alter table ${s}.audit add column organization_id uuid;

-- A key for an organisation ends with the membership of its user, also when that gets another role.
alter table ${s}.api_keys add constraint api_keys_membership_id
foreign key (membership_id) references ${s}.memberships on delete cascade;
create function ${s}.void_keys_of_membership() returns trigger language plpgsql as $$
begin
  delete from ${s}.api_keys where membership_id = old.id;
  return new;
end $$;
create trigger void_keys_of_membership before update of id on ${s}.memberships
for each row when (old.id <> new.id) execute function ${s}.void_keys_of_membership();
`,
}

// Keys refer to memberships.
const parts: readonly Part[] = [roles, organizations, access]

/** What has come after release 0.1.0, by capability. */
export const after010: Migration = {
  beforehand: (schema) => sql.join(parts.map(({ beforehand }) => beforehand?.(sql.id(schema)) ?? sql``), sql``),
  indexes: (schema) => parts.flatMap(({ indexes }) => indexes?.(sql.id(schema)) ?? []),
  afterwards: (schema) => sql.join(parts.map(({ change }) => change(sql.id(schema), schema)), sql``),
}
