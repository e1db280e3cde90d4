import { sql } from 'kysely'
import { foldText, splitWords } from '../users/user-keys.ts'
import type { Migration } from './migration.ts'

// Scripts without spaces between words. Each of their characters is a word: Hiragana, Katakana and ideographs.
const IDEOGRAPHS = '[\\u3041-\\u3096\\u309d-\\u30fa\\u30fc-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff' +
  '\\U00020000-\\U0003ffff]'

/**
 * The words of posts, for searches (contract 22.3). Nodes fill the table (`db/posts/index-posts.ts`), also from the
 * posts that exist and those that older nodes write: whatever has a position after `indexed_posts` is not in it yet.
 */
export const postWords: Migration = (schema) => {
  const s = sql.id(schema)
  return sql`
-- No reference to posts, whose check would lock their rows. A row whose post has another change_position is out of date.
create table ${s}.post_words (
  post_id uuid primary key,
  position bigint not null,
  change_position bigint,
  words tsvector not null
);
create index post_words_position on ${s}.post_words (position);
-- Without a list of pending entries, which every search would read.
create index post_words_words on ${s}.post_words using gin (words) with (fastupdate = off);

-- One row: the position up to which posts, changes and deletions are in post_words. Without it, none are.
create table ${s}.indexed_posts (
  is_only boolean primary key default true check (is_only),
  position bigint not null
);

-- The words of a text, folded, each cut to what fits into the index. PL/pgSQL, because PostgreSQL would copy the text of
-- an SQL function into every plan. A restore leaves functions without a trigger, so they may exist.
create or replace function ${s}.words_of(given text) returns text[]
language plpgsql immutable strict parallel safe as $$
declare
  folded text := ${foldText(schema, sql`given`)};
begin
  if octet_length(folded) > length(folded) then
    folded := regexp_replace(folded, ${sql.lit(`(${IDEOGRAPHS})`)}, ' \\1 ', 'g');
  end if;
  return array(select left(word, 200) from unnest(${splitWords(sql`folded`)}) as words(word));
end $$;

-- The words of a post, each behind the number of the window of 4096 positions that has the post, and its author. So a
-- search for a window reads no more of the index than the posts of that window. Of what psql or a host has written, it
-- takes what the API accepts: array_to_tsvector does not reject more than 1 MiB of words, but mixes them up.
create or replace function ${s}.words_of_post(place bigint, author uuid, title text, content text) returns tsvector
language plpgsql immutable strict parallel safe as $$
declare
  win text := (place >> 12) || '/';
begin
  return array_to_tsvector(array(
    select win || word from unnest(${s}.words_of(left(title || ' ' || content, 66000))) as words(word)
  ) || (win || '@' || author));
end $$;
`
}
