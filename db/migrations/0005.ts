import { sql } from 'kysely'
import type { Migration } from './migration.ts'

/**
 * Drafts of posts (contract 22.4). They have a table of their own, so that no statement about posts can show one. Their
 * author has few, so they are deleted with the author's row.
 */
export const postDrafts: Migration = (schema) => {
  const s = sql.id(schema)
  return sql`
create table ${s}.post_drafts (
  -- Also the id of the post.
  id uuid primary key,
  author_id uuid not null references ${s}.users on delete cascade,
  title text not null,
  content text not null,
  publish_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  row_version bigint not null default uuid_hash_extended(gen_random_uuid(), 0)
);
create index post_drafts_author on ${s}.post_drafts (author_id, id);
create index post_drafts_publish_at on ${s}.post_drafts (publish_at, id) where publish_at is not null;
create trigger renew_row_version before update on ${s}.post_drafts
for each row execute function ${s}.renew_row_version();

-- Each query of a function sees what was committed before it began. So the second of two drafts that are created at the
-- same time is counted with the first one.
create function ${s}.limit_drafts() returns trigger language plpgsql set enable_seqscan = off as $$
begin
  perform pg_advisory_xact_lock(hashtextextended(${sql.lit(`usher drafts of ${schema} `)} || new.author_id, 0));
  if (select count(*) from ${s}.post_drafts where author_id = new.author_id) > 1000 then
    raise check_violation using message = 'the author has 1,000 drafts', constraint = 'drafts_per_author';
  end if;
  return null;
end $$;
create trigger limit_drafts after insert on ${s}.post_drafts for each row execute function ${s}.limit_drafts();

-- The result of a request that has written a draft is that of the post once there is one.
create function ${s}.erase_draft_results() returns trigger language plpgsql set enable_seqscan = off as $$
begin
  update ${s}.idempotency_keys set result = null
  where record_id in (
    select old_rows.id from old_rows where not exists (select from ${s}.posts where posts.id = old_rows.id)
  ) and result is not null;
  return null;
end $$;
create trigger erase_draft_results after delete on ${s}.post_drafts referencing old table as old_rows
for each statement execute function ${s}.erase_draft_results();
`
}
