import { sql, type RawBuilder } from 'kysely'
import { SECOND_FACTOR_MISSING } from '../sign-in/second-factor.ts'
import { channelOf } from '../driver/channel.ts'
import { deliveryOwner } from '../outbox/owner.ts'
import { emailKey, keyOfEmail, keyOfMailbox, nameKey, wordsOf } from '../users/user-keys.ts'
import { userState } from '../users/user-states.ts'

/**
 * The tables of release 0.1.0, by capability: each with its constraints and indexes, then the functions and triggers
 * that keep what must hold whoever writes, also psql, a trigger of the host, and nodes of another release. The types in
 * `db/tables/` say what the columns mean.
 */
export const createTables = (schema: string): RawBuilder<unknown> =>
  sql.join(capabilities.map((describe) => describe(schema, sql.id(schema))), sql``)

// Users come first, because other tables refer to them.
const capabilities: readonly ((schema: string, s: RawBuilder<unknown>) => RawBuilder<unknown>)[] = [
  users, access, signIn, mailLinks, throttle, accounts, posts, uploads, resumableUploads, outbox, audit, idempotency,
  replicas,
]

// A query must have the expression of an index to use it, so both have it from one place, such as `emailKey`. The keys
// of addresses and names do not depend on the locale of the database (contract 2.3, 10.5): with `lower(email)`, a
// Turkish one would permit INFO@example.com beside info@example.com, and the locale C knows no letters outside ASCII.
function users (schema: string, s: RawBuilder<unknown>): RawBuilder<unknown> {
  const [name, folded] = [nameKey(schema), foldedLetters()]
  const capital = sql.lit(`[${Object.keys(folded).join('')}]`)
  return sql`
-- Folds names. No collation of PostgreSQL does that on every server: "C" folds ASCII only, those of ICU are absent from
-- some builds, and pg_c_utf8 before PostgreSQL 17. Its results change with none of them, so an index that uses it stays
-- valid. replace() for each capital is faster than translate(), which searches all. PL/pgSQL, because PostgreSQL would
-- copy the text of an SQL function into every plan. Like the other function without a trigger, a restore leaves it, so
-- it may exist.
create or replace function ${s}.fold_text(given text) returns text
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
end $$;

-- A row gets a new version at each update, for entity tags (contract 10.1). Versions are random rather than counted,
-- because a count would repeat after a backup is restored, for another content.
create function ${s}.renew_row_version() returns trigger language plpgsql as $$
begin
  new.row_version := uuid_hash_extended(gen_random_uuid(), 0);
  return new;
end $$;

-- Names of columns with underscores are never those of a field of a host.
create table ${s}.users (
  id uuid primary key,
  name text not null,
  email text not null,
  email_verified boolean not null default false,
  email_changed_at timestamptz,
  role text not null check (role in ('admin', 'user')),
  account_kind text not null default 'person' check (account_kind in ('person', 'service')),
  password_hash text,
  has_app boolean not null default false,
  disabled boolean not null default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  row_version bigint not null default uuid_hash_extended(gen_random_uuid(), 0)
);
create unique index users_email on ${s}.users (${emailKey});
create index users_name on ${s}.users (${name}, id);
create index users_words on ${s}.users using gin ((${wordsOf(name)}), (${wordsOf(emailKey)}));
create index users_role on ${s}.users (role, id);
create index users_role_email on ${s}.users (role, ${emailKey});
create index users_role_name on ${s}.users (role, ${name}, id);
-- For lists that are filtered by any combination of what concerns accounts (contract 18.2).
create index users_state on ${s}.users (${userState}, id);

-- Whether somebody has an authenticator app is not part of the record.
create trigger renew_row_version before update on ${s}.users
for each row when (old.has_app = new.has_app) execute function ${s}.renew_row_version();
`
}

function access (schema: string, s: RawBuilder<unknown>): RawBuilder<unknown> {
  const channel = sql.lit(channelOf(schema, 'session_ended'))
  return sql`
create table ${s}.sessions (
  id uuid primary key,
  user_id uuid not null references ${s}.users on delete cascade,
  secret_hash bytea not null unique,
  rotation_key bytea not null,
  rotations integer not null default 0,
  rotated_at timestamptz[] not null default '{}',
  amr text[] not null,
  auth_time timestamptz not null,
  identity_id uuid,
  provider_sid text,
  is_console boolean not null default false,
  parent_id uuid references ${s}.sessions on delete cascade,
  address text not null,
  user_agent text not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index sessions_user on ${s}.sessions (user_id);
create index sessions_expires_at on ${s}.sessions (expires_at);
create index sessions_parent on ${s}.sessions (parent_id) where parent_id is not null;
create index sessions_provider_sid on ${s}.sessions (provider_sid) where provider_sid is not null;

-- The time when the row of the session is deleted, rather than the start of that transaction, because nodes read the
-- sessions that ended within the lifetime of a token.
create table ${s}.ended_sessions (
  id uuid primary key,
  ended_at timestamptz not null default clock_timestamp()
);
create index ended_sessions_ended_at on ${s}.ended_sessions (ended_at);

create table ${s}.signing_keys (
  id text primary key,
  private_key text not null,
  public_key text not null,
  created_at timestamptz not null default now(),
  active_at timestamptz not null default now()
);

create table ${s}.api_keys (
  id uuid primary key,
  user_id uuid not null references ${s}.users on delete cascade,
  hash bytea not null unique,
  name text not null,
  actions text[],
  multi_factor boolean not null,
  created_at timestamptz not null default clock_timestamp(),
  last_used_at timestamptz,
  expires_at timestamptz
);
create index api_keys_user on ${s}.api_keys (user_id);
create index api_keys_expires_at on ${s}.api_keys (expires_at);

-- Every node is notified of the end of a session, however its row is deleted: by a logout, with its user, or by hand. A
-- token expires at most one day after the login or the refresh that returned it. If a session was not used for longer,
-- as is the case for nearly all that expire, no token of it is valid, so the nodes need not be notified.
create function ${s}.session_ended() returns trigger language plpgsql as $$
begin
  if old.last_used_at > now() - interval '25 hours' then
    insert into ${s}.ended_sessions (id) values (old.id) on conflict do nothing;
    perform pg_notify(${channel}, old.id::text);
  end if;
  return null;
end $$;
create trigger session_ended after delete on ${s}.sessions
for each row execute function ${s}.session_ended();

-- A key takes the place of a session: when its row is deleted, all nodes get the notification of an ended session.
create function ${s}.api_key_ended() returns trigger language plpgsql as $$
begin
  insert into ${s}.ended_sessions (id) values (old.id) on conflict do nothing;
  perform pg_notify(${channel}, old.id::text);
  return null;
end $$;
create trigger api_key_ended after delete on ${s}.api_keys
for each row execute function ${s}.api_key_ended();

-- Nodes remember what a key may do. So a key does not outlive the role of its user, whoever changes it.
create function ${s}.void_api_keys() returns trigger language plpgsql as $$
begin
  delete from ${s}.api_keys where user_id = new.id;
  return null;
end $$;
create trigger void_api_keys after update of role, disabled on ${s}.users
for each row when (old.role <> new.role or new.disabled > old.disabled) execute function ${s}.void_api_keys();

-- A service user has no sessions, whatever starts them. No row is found then, as if the credentials were wrong.
create function ${s}.refuse_service_sessions() returns trigger language plpgsql as $$
begin
  if exists (select from ${s}.users where id = new.user_id and account_kind = 'service') then
    return null;
  end if;
  return new;
end $$;
create trigger refuse_service_sessions before insert on ${s}.sessions
for each row execute function ${s}.refuse_service_sessions();

create function ${s}.keys_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify(${sql.lit(channelOf(schema, 'keys_changed'))}, '');
  return null;
end $$;
create trigger keys_changed after insert or update or delete on ${s}.signing_keys
for each row execute function ${s}.keys_changed();

-- Fails with UE401 if rows were written for sessions or API keys, and one of these has ended, one of the signing keys
-- has been revoked, or the time "until" has passed (contract 1.12). A statement reads sessions and keys as they were
-- when it began. If it has then waited for a lock, only a function sees what was committed meanwhile: each of its
-- queries takes a new snapshot. Sequential scans are off, because connections keep the plan of the query, and one that
-- was made for an empty table would read the whole table when it has grown.
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
        select true as is_live from ${s}.api_keys where api_keys.id = given.id limit 1
      ) api_key on true
      where given.id is not null and session.is_live is null and api_key.is_live is null
    )
  ) then
    raise exception 'a session has ended' using errcode = 'UE401';
  end if;
  return true;
end $$;
`
}

// What lets somebody in, and what undoes that, is ordered by the lock on the user, which a transaction may have waited
// for: "now()" would be its start.
function signIn (_: string, s: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
create table ${s}.passkeys (
  id uuid primary key,
  user_id uuid not null references ${s}.users on delete cascade,
  credential_id bytea not null unique,
  public_key bytea not null,
  counter bigint not null,
  transports text[] not null,
  name text not null,
  backed_up boolean not null,
  created_at timestamptz not null default clock_timestamp(),
  last_used_at timestamptz
);
create index passkeys_user on ${s}.passkeys (user_id);

create table ${s}.totp (
  user_id uuid primary key references ${s}.users on delete cascade,
  secret text not null,
  confirmed_at timestamptz,
  last_step bigint not null default 0,
  created_at timestamptz not null default clock_timestamp()
);

create table ${s}.recovery_codes (
  user_id uuid not null references ${s}.users on delete cascade,
  hash bytea not null,
  created_at timestamptz not null default clock_timestamp(),
  replaced_at timestamptz,
  primary key (user_id, hash)
);
create index recovery_codes_replaced_at on ${s}.recovery_codes (replaced_at) where replaced_at is not null;

create table ${s}.identities (
  id uuid primary key,
  user_id uuid not null references ${s}.users on delete cascade,
  provider text not null,
  issuer text not null,
  subject text not null,
  email text,
  tokens text,
  created_at timestamptz not null default clock_timestamp(),
  last_used_at timestamptz,
  constraint identities_subject unique (issuer, subject)
);
create index identities_user on ${s}.identities (user_id);

-- A login that waits for its second factor ends with the identity that has begun it.
create table ${s}.login_challenges (
  hash bytea primary key,
  user_id uuid not null references ${s}.users on delete cascade,
  password_hash text,
  identity_id uuid references ${s}.identities on delete cascade,
  provider_sid text,
  amr text[] not null,
  attempts integer not null default 0,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index login_challenges_user on ${s}.login_challenges (user_id, created_at);
create index login_challenges_expires_at on ${s}.login_challenges (expires_at);

create table ${s}.used_ceremonies (
  hash bytea primary key,
  expires_at timestamptz not null
);
create index used_ceremonies_expires_at on ${s}.used_ceremonies (expires_at);

create table ${s}.password_kinds (
  kind text primary key,
  signer_key text,
  checked_at timestamptz not null default now()
);

-- A transaction that writes to "totp" has locked the user before, so two of them cannot block each other here.
create function ${s}.set_has_app() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    update ${s}.users set has_app = false where id = old.user_id and has_app and not exists (
      select from ${s}.totp where user_id = old.user_id and confirmed_at is not null);
  end if;
  if tg_op <> 'DELETE' and new.confirmed_at is not null then
    update ${s}.users set has_app = true where id = new.user_id and not has_app;
  end if;
  return null;
end $$;
create trigger set_has_app after insert or delete or update of user_id, confirmed_at on ${s}.totp
for each row execute function ${s}.set_has_app();

-- Whoever has a second factor gets no session without it, whatever starts the session. A trigger sees a factor that was
-- added while the statement waited for the lock on the user; a condition of the statement would not.
create function ${s}.require_second_factor() returns trigger language plpgsql as $$
begin
  if exists (select from ${s}.totp where user_id = new.user_id and confirmed_at is not null) then
    raise exception 'this user has a second factor' using errcode = ${sql.lit(SECOND_FACTOR_MISSING)};
  end if;
  return new;
end $$;
create trigger require_second_factor before insert on ${s}.sessions
for each row when (not 'mfa' = any(new.amr)) execute function ${s}.require_second_factor();
`
}

function mailLinks (_: string, s: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
create table ${s}.password_links (
  hash bytea primary key,
  user_id uuid not null references ${s}.users on delete cascade,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  invitation boolean not null default false,
  -- No reference: an inviter who is deleted has no name to be shown.
  invited_by uuid
);
create index password_links_user on ${s}.password_links (user_id);

create table ${s}.verification_links (
  hash bytea primary key,
  user_id uuid not null references ${s}.users on delete cascade,
  email text not null,
  session_id uuid,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index verification_links_user on ${s}.verification_links (user_id);

create table ${s}.undo_links (
  hash bytea primary key,
  user_id uuid not null references ${s}.users on delete cascade,
  position bigint not null generated always as identity,
  email text not null,
  email_verified boolean not null,
  email_changed_at timestamptz,
  password_hash text,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null
);
create index undo_links_user on ${s}.undo_links (user_id);

create table ${s}.sign_ups (
  hash bytea primary key,
  name text not null,
  email text not null,
  password_hash text,
  binding_hash bytea not null,
  fields jsonb,
  identity jsonb,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index sign_ups_email on ${s}.sign_ups (${emailKey});
create index sign_ups_expires_at on ${s}.sign_ups (expires_at);

create table ${s}.login_links (
  hash bytea primary key,
  user_id uuid references ${s}.users on delete cascade,
  session_id uuid,
  binding_hash bytea,
  code_hash bytea not null,
  address_hash bytea not null,
  attempts integer not null default 0,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index login_links_user on ${s}.login_links (user_id);
create index login_links_binding on ${s}.login_links (binding_hash);
create index login_links_address on ${s}.login_links (address_hash);
create index login_links_expires_at on ${s}.login_links (expires_at);

-- A token that was sent to a former address proves nothing once the user has another address.
create function ${s}.email_changed() returns trigger language plpgsql as $$
begin
  if old.email <> new.email then
    delete from ${s}.password_links where user_id = new.id;
  end if;
  return null;
end $$;
create trigger email_changed after update of email on ${s}.users
for each row execute function ${s}.email_changed();

-- Another mailbox is not verified, and voids the links and codes that were sent to the former one, and the logins that
-- have begun with one of them and wait for the second factor. Addresses that differ in case only are the same mailbox.
create function ${s}.mailbox_changed() returns trigger language plpgsql as $$
begin
  delete from ${s}.verification_links where user_id = new.id;
  delete from ${s}.login_links where user_id = new.id;
  delete from ${s}.login_challenges where user_id = new.id and password_hash is null;
  new.email_verified := false;
  new.email_changed_at := now();
  return new;
end $$;
create trigger mailbox_changed before update of email on ${s}.users
for each row when (${keyOfEmail(sql`old.email`)} <> ${keyOfEmail(sql`new.email`)})
execute function ${s}.mailbox_changed();
`
}

function throttle (_: string, s: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
-- Unlogged, because it is written at every login, and because losing it in a crash does little harm.
create unlogged table ${s}.throttle (
  key text primary key,
  free_at timestamptz not null,
  granted integer not null
);
create index throttle_free_at on ${s}.throttle (free_at);

create table ${s}.login_failures (
  key bytea primary key,
  count integer not null,
  last_failed_at timestamptz not null default now()
);
create index login_failures_count on ${s}.login_failures (count, last_failed_at);

-- No reference to users, whose check would wait for locks on them. The rows of a deleted user are purged.
create table ${s}.recognised_networks (
  user_id uuid not null,
  network text not null,
  last_used_at timestamptz not null default now(),
  primary key (user_id, network)
);
create index recognised_networks_last_used_at on ${s}.recognised_networks (last_used_at);
`
}

// The row of a user is deleted before the posts, uploads and audit entries are. A cascade over hundreds of thousands of
// rows would hold its locks for seconds. Instead, a trigger queues the user in `deleted_users`, so that deletions by
// hand are queued as well. The posts and uploads of a queued user are invisible, and are removed in batches.
function accounts (_: string, s: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
create table ${s}.deleted_users (
  user_id uuid primary key,
  posts_below bigint not null default 9223372036854775807,
  audit_below uuid not null default 'ffffffff-ffff-ffff-ffff-ffffffffffff'
);

create table ${s}.user_imports (
  file_hash bytea primary key,
  position bigint not null default 0,
  line bigint not null default 0,
  imported bigint not null default 0,
  admins bigint not null default 0,
  rejected bigint not null default 0,
  rejected_bytes bigint not null default 0,
  started_at timestamptz not null default now(),
  finished_at timestamptz
);

create function ${s}.user_deleted() returns trigger language plpgsql as $$
begin
  insert into ${s}.deleted_users (user_id) values (old.id) on conflict do nothing;
  return null;
end $$;
create trigger user_deleted after delete on ${s}.users
for each row execute function ${s}.user_deleted();
`
}

function posts (schema: string, s: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
-- No reference to users is needed: the statement that creates posts locks the rows of their authors. No insert can set
-- a position without regard to the lock of the trigger.
create table ${s}.posts (
  id uuid primary key,
  position bigint not null generated always as identity,
  epoch integer not null,
  author_id uuid not null,
  title text not null,
  content text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  row_version bigint not null default uuid_hash_extended(gen_random_uuid(), 0)
);
create unique index posts_position on ${s}.posts (position);
create index posts_author on ${s}.posts (author_id, position);

-- The epoch in which a post was created is PostgreSQL's timeline: the first eight hexadecimal digits of the names of
-- files of the write-ahead log. It changes when a standby takes over: posts that were not replicated are then lost, and
-- new posts get their positions. Some services that are compatible with PostgreSQL have no such files and replicate in
-- other ways. There the epoch is always 0.
do $$
declare
  timeline text := $timeline$('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer$timeline$;
begin
  begin
    execute 'select ' || timeline;
  exception when others then
    timeline := '0';
  end;
  execute 'create view ${s}.current_epoch as select ' || timeline || ' as epoch';
  execute 'alter table ${s}.posts alter epoch set default ' || timeline;
end $$;

-- Every batch of posts updates these rows. With room on the page, that adds nothing to the indexes. No reference to
-- users, whose check would wait for locks on them.
create table ${s}.post_rates (
  user_id uuid primary key,
  since timestamptz not null,
  posts bigint not null
) with (fillfactor = 50, autovacuum_vacuum_threshold = 1000);
create index post_rates_since on ${s}.post_rates (since);

-- Numbers posts in commit order. An insert takes a lock before its first position is assigned, and holds it until its
-- transaction has ended, when its posts are visible. Therefore a reader who sees a post also sees all posts with lower
-- positions, except for those that were rolled back or are already deleted. This does not make commits slower, because
-- PostgreSQL commits transactions with notifications one at a time in any case.
create function ${s}.post_ordered() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended(${sql.lit(`usher posts of ${schema}`)}, 0));
  return null;
end $$;
create trigger post_ordered before insert on ${s}.posts
for each statement execute function ${s}.post_ordered();

-- The notification has no payload. It only causes nodes to read the posts after the last position that they know. Nodes
-- that announce posts through an emitter suppress it with "usher.quiet".
create function ${s}.post_created() returns trigger language plpgsql as $$
begin
  if current_setting('usher.quiet', true) is distinct from 'on' then
    perform pg_notify(${sql.lit(channelOf(schema, 'post_created'))}, '');
  end if;
  return null;
end $$;
create trigger post_created after insert on ${s}.posts
for each statement execute function ${s}.post_created();

create trigger renew_row_version before update on ${s}.posts
for each row execute function ${s}.renew_row_version();
`
}

// Triggers announce what must stop a download, so that changes by psql also stop it. A notification has one of the
// forms `deleted <upload>`, `private <upload>`, `link <link>` and `owner <user>`.
//
// Triggers also count, so that what psql or a cascade adds or removes counts as well. A user without a row is counted
// when an upload of theirs is added or removed next, so a row that is deleted comes back correct. They run once for
// each statement, because rows that the statement has not counted yet would otherwise be counted twice. A node limits
// uploads by the setting `usher.upload_quota` of its statement: bytes and files, where 0 is no limit (contract 13.4).
function uploads (schema: string, s: RawBuilder<unknown>): RawBuilder<unknown> {
  const channel = sql.lit(channelOf(schema, 'upload_changed'))
  return sql`
-- No reference to users: the row remains until its file is removed, so that no file is left behind on the disk.
create table ${s}.uploads (
  id uuid primary key,
  user_id uuid,
  filename text not null,
  media_type text not null,
  size bigint not null,
  sha256 text not null,
  description text not null,
  is_private boolean not null default false,
  created_at timestamptz not null default now(),
  renamed_at timestamptz,
  row_version bigint not null default uuid_hash_extended(gen_random_uuid(), 0)
);
create index uploads_user_list on ${s}.uploads (user_id, id);

create table ${s}.upload_links (
  id uuid primary key,
  upload_id uuid not null,
  owner_id uuid not null,
  created_by uuid,
  key_id uuid,
  name text not null,
  secret_hash bytea not null unique,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index upload_links_upload on ${s}.upload_links (upload_id, id);
create index upload_links_owner on ${s}.upload_links (owner_id);
create index upload_links_creator on ${s}.upload_links (created_by);
create index upload_links_key on ${s}.upload_links (key_id) where key_id is not null;
create index upload_links_expires_at on ${s}.upload_links (expires_at);

-- No reference to users, whose check would wait for locks on them.
create table ${s}.upload_usage (
  user_id uuid primary key,
  bytes bigint not null,
  files bigint not null
);

create function ${s}.upload_owned() returns trigger language plpgsql as $$
begin
  if new.user_id is not null then
    perform 1 from ${s}.users where id = new.user_id for key share;
    if not found then
      raise foreign_key_violation
        using message = 'the owner of an upload does not exist', constraint = 'uploads_user_id_fkey';
    end if;
  end if;
  return null;
end $$;
create trigger upload_owned after insert on ${s}.uploads
for each row execute function ${s}.upload_owned();

create trigger renew_row_version before update on ${s}.uploads
for each row execute function ${s}.renew_row_version();

-- In an update that is a deletion, the owner becomes null.
create function ${s}.upload_changed() returns trigger language plpgsql as $$
begin
  if old.user_id is not null and (tg_op = 'DELETE' or new.user_id is null) then
    perform pg_notify(${channel}, 'deleted ' || old.id);
    delete from ${s}.upload_links where upload_id = old.id;
  elsif tg_op = 'DELETE' then
    return null;
  elsif new.is_private and not old.is_private then
    perform pg_notify(${channel}, 'private ' || old.id);
  end if;
  return null;
end $$;
create trigger upload_changed after update or delete on ${s}.uploads
for each row execute function ${s}.upload_changed();

create function ${s}.upload_link_deleted() returns trigger language plpgsql as $$
begin
  if old.expires_at > now() then
    perform pg_notify(${channel}, 'link ' || old.id);
  end if;
  return null;
end $$;
create trigger upload_link_deleted after delete on ${s}.upload_links
for each row execute function ${s}.upload_link_deleted();

create function ${s}.upload_owner_deleted() returns trigger language plpgsql as $$
begin
  perform pg_notify(${channel}, 'owner ' || new.user_id);
  return null;
end $$;
create trigger upload_owner_deleted after insert on ${s}.deleted_users
for each row execute function ${s}.upload_owner_deleted();

-- Links must not outlive a repair of the account, nor the permission of who created them: a thief may have created
-- them. "usher.rehash" says that the password remains the same, and only its hash is a better one.
create function ${s}.void_upload_links() returns trigger language plpgsql as $$
begin
  if coalesce(current_setting('usher.rehash', true), '') = '' then
    delete from ${s}.upload_links where owner_id = new.id;
    delete from ${s}.upload_links where created_by = new.id;
  end if;
  return null;
end $$;
create trigger void_upload_links after update on ${s}.users
for each row when (
  old.password_hash is distinct from new.password_hash or old.role <> new.role or (new.disabled and not old.disabled)
) execute function ${s}.void_upload_links();

-- Concurrent changes of the same user wait for the row. One that inserts it has counted none of the others. An upload
-- that is unfinished counts with the length that it will have, so that its last request cannot fail because of the
-- quota (contract 13.5).
create function ${s}.add_upload_usage(owner uuid, more_bytes bigint, more_files bigint, quota text)
returns void language plpgsql as $$
declare
  used ${s}.upload_usage%rowtype;
begin
  update ${s}.upload_usage set bytes = bytes + more_bytes, files = files + more_files
  where user_id = owner returning * into used;
  if not found then
    insert into ${s}.upload_usage as usage
      select owner, coalesce(sum(counted.size), 0), count(*) from (
        select size from ${s}.uploads where user_id = owner
        union all select length from ${s}.resumable_uploads where user_id = owner and upload_id is null
      ) as counted
      on conflict (user_id) do update set bytes = usage.bytes + more_bytes, files = usage.files + more_files
      returning * into used;
  end if;
  if used.files <= 0 then
    delete from ${s}.upload_usage where user_id = owner;
  end if;
  if used.bytes > nullif(split_part(quota, ' ', 1)::bigint, 0)
    or used.files > nullif(split_part(quota, ' ', 2)::bigint, 0)
  then
    raise check_violation
      using message = 'the owner of the upload has no space left', constraint = 'upload_quota';
  end if;
end $$;

create function ${s}.count_uploads() returns trigger language plpgsql as $$
declare
  quota text := nullif(current_setting('usher.upload_quota', true), '');
begin
  if tg_op = 'INSERT' then
    perform ${s}.add_upload_usage(user_id, bytes, files, quota) from (
      select user_id, sum(size)::bigint as bytes, count(*) as files
      from new_uploads where user_id is not null group by user_id order by user_id
    ) as added;
  elsif tg_op = 'UPDATE' then
    perform ${s}.add_upload_usage(user_id, bytes, files, null) from (
      select user_id, sum(size)::bigint as bytes, sum(files)::bigint as files from (
        select user_id, size, 1 as files from new_uploads union all select user_id, -size, -1 from old_uploads
      ) as changes
      where user_id is not null group by user_id having sum(size) <> 0 or sum(files) <> 0 order by user_id
    ) as changed;
  elsif tg_op = 'DELETE' then
    perform ${s}.add_upload_usage(user_id, -bytes, -files, null) from (
      select user_id, sum(size)::bigint as bytes, count(*) as files
      from old_uploads where user_id is not null group by user_id order by user_id
    ) as removed;
  else
    delete from ${s}.upload_usage;
  end if;
  return null;
end $$;
${countingTriggers(s, 'uploads')}`
}

function resumableUploads (_: string, s: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
-- No reference to users, whose check would wait for locks on them.
create table ${s}.resumable_uploads (
  id uuid primary key,
  user_id uuid not null,
  networks text[] not null,
  metadata text not null,
  length bigint not null,
  received bigint not null default 0,
  parts jsonb not null default '[]',
  writer uuid,
  upload_id uuid,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index resumable_uploads_expires_at on ${s}.resumable_uploads (expires_at);
create index resumable_uploads_unfinished on ${s}.resumable_uploads (user_id, networks) where upload_id is null;

-- The bytes of a deleted user are removed by the next purge.
create function ${s}.resumable_owner_deleted() returns trigger language plpgsql as $$
begin
  update ${s}.resumable_uploads set expires_at = now() where user_id = new.user_id;
  return null;
end $$;
create trigger resumable_owner_deleted after insert on ${s}.deleted_users
for each row execute function ${s}.resumable_owner_deleted();

create function ${s}.count_resumable_uploads() returns trigger language plpgsql as $$
declare
  quota text := nullif(current_setting('usher.upload_quota', true), '');
begin
  if tg_op = 'INSERT' then
    perform ${s}.add_upload_usage(user_id, bytes, files, quota) from (
      select user_id, sum(length)::bigint as bytes, count(*) as files
      from new_uploads where upload_id is null group by user_id order by user_id
    ) as added;
  elsif tg_op = 'UPDATE' then
    perform ${s}.add_upload_usage(user_id, bytes, files, null) from (
      select user_id, sum(size)::bigint as bytes, sum(files)::bigint as files from (
        select user_id, length as size, 1 as files from new_uploads where upload_id is null
        union all select user_id, -length, -1 from old_uploads where upload_id is null
      ) as changes group by user_id having sum(size) <> 0 or sum(files) <> 0 order by user_id
    ) as changed;
  elsif tg_op = 'DELETE' then
    perform ${s}.add_upload_usage(user_id, -bytes, -files, null) from (
      select user_id, sum(length)::bigint as bytes, count(*) as files
      from old_uploads where upload_id is null group by user_id order by user_id
    ) as removed;
  else
    delete from ${s}.upload_usage;
  end if;
  return null;
end $$;
${countingTriggers(s, 'resumable_uploads')}`
}

// Their names come after that of the trigger that locks the owner, so that every upload takes its locks in the same
// order.
function countingTriggers (s: RawBuilder<unknown>, table: 'uploads' | 'resumable_uploads'): RawBuilder<unknown> {
  const events = {
    insert: 'referencing new table as new_uploads',
    update: 'referencing old table as old_uploads new table as new_uploads',
    delete: 'referencing old table as old_uploads',
    truncate: '',
  }
  return sql.join(Object.entries(events).map(([event, tables]) => sql`
create trigger ${sql.id(`${table}_counted_${event}`)} after ${sql.raw(event)} on ${s}.${sql.id(table)} ${sql.raw(tables)}
for each statement execute function ${s}.${sql.id(`count_${table}`)}();`), sql``)
}

function outbox (schema: string, s: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
create table ${s}.event_consumers (
  name text not null,
  type text not null,
  seen_at timestamptz not null default now(),
  primary key (name, type)
);

-- Rows live for a moment only, so the table is vacuumed often.
create table ${s}.outbox (
  position bigint primary key generated always as identity,
  id uuid not null default gen_random_uuid(),
  consumer text not null,
  type text not null,
  subject uuid not null,
  data jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null default clock_timestamp() + interval '3 days',
  due_at timestamptz not null default clock_timestamp(),
  lease uuid,
  attempts integer not null default 0
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
create index outbox_due on ${s}.outbox (consumer, due_at);
create index outbox_subject on ${s}.outbox (consumer, subject, position);
create index outbox_owner on ${s}.outbox (consumer, (${deliveryOwner}), type, position);
create index outbox_expires_at on ${s}.outbox (expires_at);

create table ${s}.failed_deliveries (
  id uuid primary key,
  consumer text not null,
  type text not null,
  subject uuid not null,
  data jsonb not null,
  created_at timestamptz not null,
  attempts integer not null,
  error text not null,
  failed_at timestamptz not null default clock_timestamp()
);
create index failed_deliveries_failed_at on ${s}.failed_deliveries (failed_at, id);
create index failed_deliveries_subject on ${s}.failed_deliveries (subject);

create table ${s}.mail_limits (
  key text primary key,
  free_at timestamptz not null
);
create index mail_limits_free_at on ${s}.mail_limits (free_at);

create function ${s}.consumers_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify(${sql.lit(channelOf(schema, 'consumers_changed'))}, '');
  return null;
end $$;
create trigger consumers_changed after insert or delete on ${s}.event_consumers
for each statement execute function ${s}.consumers_changed();

-- A notification without a payload wakes the nodes that deliver.
create function ${s}.outbox_written() returns trigger language plpgsql as $$
begin
  perform pg_notify(${sql.lit(channelOf(schema, 'outbox_written'))}, '');
  return null;
end $$;
create trigger outbox_written after insert on ${s}.outbox
for each statement execute function ${s}.outbox_written();

-- Charges a mail to a limit, by the generic cell rate algorithm. Returns when it may be sent, or null if there is no
-- room, unless it may wait for it. A subject is hashed, because an address that belongs to no user must not be stored.
create function ${s}.charge_mail_limit(subject text, burst integer, period interval, may_wait boolean)
returns timestamptz language plpgsql as $$
declare
  due timestamptz;
begin
  insert into ${s}.mail_limits as present (key, free_at)
  values (encode(sha256(convert_to(subject, 'UTF8')), 'hex'), clock_timestamp() + period)
  on conflict (key) do update set free_at = greatest(present.free_at, clock_timestamp()) + period
    where may_wait or present.free_at <= clock_timestamp() + period * (burst - 1)
  returning free_at - period * burst into due;
  return due;
end $$;

-- Charges a mail to the limit "own", and to the one that several share, of which "own" is a quarter. Null is none.
-- Returns whether both have room.
create function ${s}.charge_mail(own text, shared text, burst integer, period interval)
returns boolean language plpgsql as $$
begin
  if ${s}.charge_mail_limit(own, burst, period, false) is null then
    return false;
  end if;
  if shared is null or ${s}.charge_mail_limit(shared, burst * 4, period / 4, false) is not null then
    return true;
  end if;
  update ${s}.mail_limits set free_at = free_at - period
  where key = encode(sha256(convert_to(own, 'UTF8')), 'hex');
  return false;
end $$;

-- Adds a notice to another one about the same user that waits for its place in the limit. Of notices of the same name,
-- a mail has a few, the last of which says that there were more. Returns false if none waits.
create function ${s}.merge_notice(added jsonb, owner text, recipient text, until timestamptz)
returns boolean language plpgsql as $$
declare
  most constant integer := 6;
  waiting ${s}.outbox%rowtype;
  merged jsonb;
  number integer;
begin
  select * into waiting from ${s}.outbox
  where consumer = 'mail' and ${deliveryOwner} = owner and type = 'mail'
    and ${keyOfEmail(sql`data ->> 'to'`)} = ${keyOfEmail(sql`recipient`)} and data ? 'notice' and attempts = 0 and lease is null and due_at > clock_timestamp()
  order by position desc limit 1 for update;
  if not found then
    return false;
  end if;
  merged := coalesce(waiting.data -> 'merged', '[]');
  select count(*) + 1 into number from jsonb_array_elements(merged || (waiting.data -> 'notice')) as notices(notice)
  where notice -> 'name' = added -> 'name';
  if number <= most then
    update ${s}.outbox
    set data = data || jsonb_build_object('merged', merged || (added || jsonb_build_object('isLast', number = most))),
      expires_at = greatest(expires_at, until)
    where position = waiting.position;
  end if;
  return true;
end $$;

-- Limits the mails to one recipient (contract 11.5), in the transaction of whatever stores a mail. A mail has its
-- limits in "limits", since they are options of the node, and its kind in "budget". One that exceeds its limit is
-- stored without recipient and content, so that a node logs and deletes it. A notice waits instead, and those that
-- follow are added to it. A mail without limits has counted already: an operator lets it be attempted again.
create function ${s}.limit_mail() returns trigger language plpgsql as $$
declare
  limits jsonb := new.data -> 'limits';
  recipient text := new.data ->> 'to';
  owner uuid := new.data ->> 'userId';
  own text := new.data ->> 'budget';
  shared text;
  burst integer;
  period interval;
  verified boolean;
begin
  if limits is null then
    return new;
  end if;
  new.data := new.data - 'limits';
  -- The former address of a user counts as verified if it was, as long as the change can be undone.
  verified := exists (
    select from ${s}.users where ${emailKey} = ${keyOfEmail(sql`recipient`)} and email_verified
  ) or exists (
    select from ${s}.undo_links
    where user_id = owner and ${emailKey} = ${keyOfEmail(sql`recipient`)} and email_verified and expires_at > now()
  );
  limits := limits -> case when verified then 'verified' else 'unverified' end;
  burst := limits ->> 'burst';
  period := make_interval(secs => (limits ->> 'seconds')::float8);
  if recipient is null then
    -- Without a recipient nothing is limited, but it takes the same work.
    recipient := new.id;
    period := interval '0';
  end if;
  if verified then
    -- Only who reads the mailbox can have verified an address of it.
    own := concat_ws(' ', own, 'verified', ${keyOfEmail(sql`recipient`)});
  elsif owner is not null then
    shared := concat_ws(' ', own, 'users', ${keyOfMailbox(sql`recipient`)});
    own := concat_ws(' ', own, owner, ${keyOfMailbox(sql`recipient`)});
  else
    own := concat_ws(' ', own, ${keyOfMailbox(sql`recipient`)});
  end if;
  if ${s}.charge_mail(own, shared, burst, period) then
    return new;
  end if;
  if new.data ? 'notice' then
    if ${s}.merge_notice(
      new.data -> 'notice' || jsonb_build_object('id', new.id, 'at', new.created_at, 'token', new.data -> 'token'),
      owner::text, recipient, new.expires_at
    ) then
      return null;
    end if;
    -- What waits is charged to the limit of its user only: nobody lets others wait. An address that nobody has verified
    -- may be that of a stranger, so a user who has one after the other does not let endless mails wait.
    if verified or (
      select count(*) < 10 from ${s}.outbox
      where consumer = 'mail' and ${deliveryOwner} = owner::text and type = 'mail' and data ? 'notice' and attempts = 0
        and lease is null and due_at > clock_timestamp()
    ) then
      new.due_at := ${s}.charge_mail_limit(own, burst, period, true);
      if new.due_at <= clock_timestamp() then
        -- Only the shared limit is used up.
        new.due_at := clock_timestamp() + period;
      end if;
      return new;
    end if;
  end if;
  new.data := new.data || jsonb_build_object('to', null, 'content', '', 'isLimited', true);
  new.expires_at := clock_timestamp();
  return new;
end $$;
create trigger limit_mail before insert on ${s}.outbox
for each row when (new.type = 'mail') execute function ${s}.limit_mail();
`
}

function audit (_: string, s: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
-- No references, because entries remain when the users that they refer to are deleted.
create table ${s}.audit (
  id uuid primary key,
  action text not null,
  actor_id uuid,
  user_id uuid,
  session_id uuid,
  key_id uuid,
  address text not null,
  user_agent text not null,
  created_at timestamptz not null default now()
);
create index audit_action on ${s}.audit (action, id);
create index audit_user on ${s}.audit (user_id, id);
-- With the others alone, a rare action would be found only after reading all entries of the user.
create index audit_user_action on ${s}.audit (user_id, action, id);

-- The entries by day, so that nobody has to count them for each overview, and up to which one they are counted.
create table ${s}.audit_counts (
  day date not null,
  action text not null,
  count bigint not null,
  primary key (day, action)
);
create table ${s}.audit_counted (
  is_only boolean primary key default true check (is_only),
  until uuid not null
);
`
}

function idempotency (_: string, s: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
create table ${s}.idempotency_keys (
  key uuid not null,
  part uuid not null,
  fingerprint text not null,
  kind text not null,
  record_id uuid,
  result text,
  row_version bigint,
  expires_at timestamptz not null default now() + interval '24 hours',
  primary key (key, part)
);
-- Both values ascend, so that an insertion only touches the last page of each index.
create index idempotency_keys_record on ${s}.idempotency_keys (record_id);
create index idempotency_keys_expires_at on ${s}.idempotency_keys (expires_at);

-- Rejects the result of a request if its key has one of a different request (contract 10.4). Their parts may differ, so
-- the primary key does not. A statement looks for other results with its key once it has the lock of the key, but in
-- the snapshot with which it began. If it has waited in between, as all new posts do for each other, it does not see
-- what another node has committed meanwhile. The trigger runs at the end of the statement, and its query takes a new
-- snapshot. Sequential scans are off, because connections keep the plan of the query, and one that was made for an
-- empty table would read the whole table when it has grown.
create function ${s}.keep_one_request() returns trigger language plpgsql set enable_seqscan = off as $$
begin
  if exists (
    select from new_keys cross join lateral (
      select from ${s}.idempotency_keys stored
      where stored.key = new_keys.key and stored.fingerprint <> new_keys.fingerprint limit 1
    ) as different
  ) then
    raise unique_violation using
      message = 'the idempotency key has a result of a different request', constraint = 'idempotency_keys_pkey';
  end if;
  return null;
end $$;
create trigger keep_one_request after insert on ${s}.idempotency_keys referencing new table as new_keys
for each statement execute function ${s}.keep_one_request();

-- A result has the data of its record, so it is erased when that is deleted, by whatever means.
create function ${s}.erase_results() returns trigger language plpgsql as $$
begin
  update ${s}.idempotency_keys set result = null
  where record_id in (select id from old_rows) and result is not null;
  return null;
end $$;
create trigger erase_results after delete on ${s}.users referencing old table as old_rows
for each statement execute function ${s}.erase_results();
create trigger erase_results after delete on ${s}.posts referencing old table as old_rows
for each statement execute function ${s}.erase_results();
create trigger erase_results after delete on ${s}.uploads referencing old table as old_rows
for each statement execute function ${s}.erase_results();
`
}

function replicas (_: string, s: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
create table ${s}.replica_marks (
  id uuid primary key,
  created_at timestamptz not null default now()
);
`
}

// Where Unicode has letters of two cases, besides ASCII. To look at all characters would delay a start.
const BLOCKS = [
  [0xc0, 0x587], [0x10a0, 0x1fff], [0x2100, 0x2dff], [0xa640, 0xa7ff], [0xff21, 0xff3a], [0x10400, 0x105ff],
  [0x10c80, 0x10dff], [0x118a0, 0x118df], [0x16e00, 0x16eff], [0x1e900, 0x1e943],
] as const

// The letters outside ASCII that have a lower case of one character, with that. Those that only some languages fold, or
// that have another form at the end of a word, are folded as well.
function foldedLetters (): Record<string, string> {
  const folded: Record<string, string> = {}
  for (const [first, last] of BLOCKS) {
    for (let code = first; code <= last; code++) {
      const letter = String.fromCodePoint(code)
      const lower = letter.toLowerCase()
      if (lower !== letter) folded[letter] = lower
    }
  }
  return { ...folded, İ: 'i', ı: 'i', ς: 'σ', ſ: 's' }
}
