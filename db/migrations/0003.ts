import { sql } from 'kysely'
import type { Migration } from './migration.ts'

/**
 * Changes and deletions of posts, for subscribers (contract 22.1). Each takes a position of the same sequence as new
 * posts do, under the same lock, so that all three are in the order of their commits. A post keeps the position of its
 * last change only: who has not read an earlier one needs no other state than the last.
 */
export const postChanges: Migration = {
  beforehand: (schema) => sql`
alter table ${sql.id(schema)}.posts add column if not exists change_position bigint,
  add column if not exists change_epoch integer;
`,
  indexes (schema) {
    const posts = sql`${sql.id(schema)}.posts`
    return [
      { name: 'posts_change_position', on: sql`${posts} (change_position) where change_position is not null` },
      { name: 'posts_author_change', on: sql`${posts} (author_id, change_position) where change_position is not null` },
    ]
  },
  afterwards (schema) {
    const s = sql.id(schema)
    const position = sql`nextval(${sql.lit(`"${schema.replaceAll('"', '""')}".posts_position_seq`)})`
    return sql`
-- Those of the last 30 days. A row without a post stands for all changes and deletions up to its position, which are
-- not known any more.
create table ${s}.post_deletions (
  position bigint primary key,
  epoch integer not null,
  post_id uuid,
  author_id uuid,
  deleted_at timestamptz not null default now()
);
create index post_deletions_author on ${s}.post_deletions (author_id, position);
create index post_deletions_deleted_at on ${s}.post_deletions (deleted_at) where post_id is not null;

create trigger post_change_ordered before update of title, content on ${s}.posts
for each statement execute function ${s}.post_ordered();
create function ${s}.post_changed() returns trigger language plpgsql as $$
begin
  new.change_position = ${position};
  new.change_epoch = (select epoch from ${s}.current_epoch);
  return new;
end $$;
create trigger post_changed before update of title, content on ${s}.posts for each row
when ((old.title, old.content) is distinct from (new.title, new.content)) execute function ${s}.post_changed();
create trigger post_change_announced after update of title, content on ${s}.posts
for each statement execute function ${s}.post_created();

create trigger post_deletion_ordered before delete on ${s}.posts
for each statement execute function ${s}.post_ordered();
create function ${s}.post_deleted() returns trigger language plpgsql as $$
begin
  insert into ${s}.post_deletions (position, epoch, post_id, author_id)
  select ${position}, current_epoch.epoch, old_rows.id, author_id from old_rows, ${s}.current_epoch;
  return null;
end $$;
create trigger post_deleted after delete on ${s}.posts referencing old table as old_rows
for each statement execute function ${s}.post_deleted();
create trigger post_deletion_announced after delete on ${s}.posts
for each statement execute function ${s}.post_created();

insert into ${s}.post_deletions (position, epoch)
select last_value, epoch from ${s}.posts_position_seq, ${s}.current_epoch where is_called;
`
  },
}
