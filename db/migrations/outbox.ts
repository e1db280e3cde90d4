import { sql, type Kysely } from 'kysely'
import { channelOf } from '../driver/channel.ts'
import type { Tables } from '../tables/index.ts'
import { createTrigger } from './trigger.ts'

/**
 * Adds the outbox of events and mails (contract 12.5). A notification without a payload wakes the nodes that deliver.
 */
export async function createOutbox (db: Kysely<Tables>, schema: string): Promise<void> {
  await db.schema.createTable('event_consumers')
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('type', 'text', (column) => column.notNull())
    .addColumn('seen_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addPrimaryKeyConstraint('event_consumers_pkey', ['name', 'type'])
    .execute()
  for (const [event, name] of [['insert', 'consumers_added'], ['delete', 'consumers_deleted']] as const) {
    await createTrigger(db, schema, 'event_consumers', `after ${event}`, name, sql`
      perform pg_notify(${sql.lit(channelOf(schema, 'consumers_changed'))}, '')`, 'statement')
  }

  await db.schema.createTable('outbox')
    .addColumn('position', 'bigint', (column) => column.primaryKey().generatedAlwaysAsIdentity())
    .addColumn('id', 'uuid', (column) => column.notNull().defaultTo(sql`gen_random_uuid()`))
    .addColumn('consumer', 'text', (column) => column.notNull())
    .addColumn('type', 'text', (column) => column.notNull())
    .addColumn('subject', 'uuid', (column) => column.notNull())
    .addColumn('data', 'jsonb', (column) => column.notNull())
    .addColumn('created_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`clock_timestamp()`))
    .addColumn('expires_at', 'timestamptz', (column) =>
      column.notNull().defaultTo(sql`clock_timestamp() + interval '3 days'`))
    .addColumn('due_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`clock_timestamp()`))
    .addColumn('lease', 'uuid')
    .addColumn('attempts', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
  // Rows live for a moment only, so the table is vacuumed often.
  await sql`alter table ${sql.id(schema, 'outbox')} set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000)`
    .execute(db)
  await db.schema.createIndex('outbox_due').on('outbox').columns(['consumer', 'due_at']).execute()
  await db.schema.createIndex('outbox_subject').on('outbox').columns(['consumer', 'subject', 'position']).execute()
  await db.schema.createIndex('outbox_expires_at').on('outbox').column('expires_at').execute()
  await createTrigger(db, schema, 'outbox', 'after insert', 'outbox_written', sql`
    perform pg_notify(${sql.lit(channelOf(schema, 'outbox_written'))}, '')`, 'statement')

  await db.schema.createTable('failed_deliveries')
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('consumer', 'text', (column) => column.notNull())
    .addColumn('type', 'text', (column) => column.notNull())
    .addColumn('subject', 'uuid', (column) => column.notNull())
    .addColumn('data', 'jsonb', (column) => column.notNull())
    .addColumn('created_at', 'timestamptz', (column) => column.notNull())
    .addColumn('attempts', 'integer', (column) => column.notNull())
    .addColumn('error', 'text', (column) => column.notNull())
    .addColumn('failed_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`clock_timestamp()`))
    .execute()
  await db.schema.createIndex('failed_deliveries_failed_at').on('failed_deliveries')
    .columns(['failed_at', 'id']).execute()
  await db.schema.createIndex('failed_deliveries_subject').on('failed_deliveries').column('subject').execute()
}
