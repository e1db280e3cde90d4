import { sql, type Kysely, type RawBuilder } from 'kysely'
import type { Tables } from '../tables/index.ts'

/**
 * Adds the limits of mails to one recipient (contract 11.5).
 *
 * A trigger applies them, so that they hold for whatever stores a mail, in its transaction. A mail has its limits in
 * `limits`, since they are options of the node, and its kind in `budget`. One that exceeds its limit is stored without
 * recipient and content, so that a node logs and deletes it. One without limits is of a node of the previous release,
 * or was restored from a backup.
 */
export async function createMailLimits (db: Kysely<Tables>, schema: string): Promise<void> {
  await db.schema.createTable('mail_limits')
    .addColumn('key', 'text', (column) => column.primaryKey())
    .addColumn('free_at', 'timestamptz', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('mail_limits_free_at').on('mail_limits').column('free_at').execute()
  await defineLimitMail(schema, { replace: '', keyOf: (text) => `lower(${text})` }).execute(db)
  await sql`
    create trigger limit_mail before insert on ${sql.id(schema, 'outbox')}
    for each row when (new.type = 'mail') execute function ${sql.id(schema, 'limit_mail')}()`.execute(db)
}

interface LimitMail {
  replace: '' | 'or replace'
  /** Returns the SQL of an address without its case. */
  keyOf: (text: string) => string
}

/** Returns the definition of the function that limits mails. */
export function defineLimitMail (schema: string, { replace, keyOf }: LimitMail): RawBuilder<unknown> {
  const [email, recipient] = [sql.raw(keyOf('email')), sql.raw(keyOf('recipient'))]
  return sql`
    create ${sql.raw(replace)} function ${sql.id(schema, 'limit_mail')}() returns trigger language plpgsql as $$
    declare
      limits jsonb := new.data -> 'limits';
      recipient text := new.data ->> 'to';
      owner uuid := new.data ->> 'userId';
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
        select from ${sql.id(schema, 'users')} where ${email} = ${recipient} and email_verified
      ) or exists (
        select from ${sql.id(schema, 'undo_tokens')}
        where user_id = owner and ${email} = ${recipient} and email_verified and expires_at > now()
      );
      limits := limits -> case when verified then 'verified' else 'unverified' end;
      burst := limits ->> 'burst';
      period := make_interval(secs => (limits ->> 'seconds')::float8);
      if recipient is null then
        -- Without a recipient nothing is limited, but it takes the same work.
        recipient := new.id;
        period := interval '0';
      end if;
      -- What follows a plus sign does not make another mailbox.
      insert into ${sql.id(schema, 'mail_limits')} as present (key, free_at) values (
        encode(sha256(convert_to(
          concat_ws(' ', new.data ->> 'budget', verified, regexp_replace(${recipient}, '\\+[^@]*@', '@')), 'UTF8'
        )), 'hex'), clock_timestamp() + period
      ) on conflict (key) do update set free_at = greatest(present.free_at, clock_timestamp()) + period
        where present.free_at <= clock_timestamp() + period * (burst - 1);
      if not found then
        new.data := new.data || jsonb_build_object('to', null, 'content', '', 'isLimited', true);
        new.expires_at := clock_timestamp();
      end if;
      return new;
    end $$`
}
