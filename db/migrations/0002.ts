import { sql, type RawBuilder } from 'kysely'
import { channelOf } from '../driver/channel.ts'
import { emailKey, keyOfName } from '../users/user-keys.ts'
import type { Migration } from './migration.ts'

type Part = (schema: string, s: RawBuilder<unknown>) => RawBuilder<unknown>

const script = (parts: readonly Part[]) => (schema: string): RawBuilder<unknown> =>
  sql.join(parts.map((describe) => describe(schema, sql.id(schema))), sql``)

/** What release 0.2.0 adds: organisations. */
export const addOrganizations: Migration = {
  beforehand: script([(_, s) => sql`
alter table ${s}.api_keys add column if not exists membership_id uuid;
`]),
  indexes: (schema) => [{
    name: 'api_keys_membership',
    on: sql`${sql.id(schema, 'api_keys')} (membership_id) where membership_id is not null`,
  }],
  afterwards: script([organizations, access]),
}

function organizations (schema: string, s: RawBuilder<unknown>): RawBuilder<unknown> {
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
}

function access (_: string, s: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
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
`
}
