import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Sql, TransactionSql } from 'postgres'

interface Note { id: string, text: string }

/** What organisations and their roles are in this app. */
export const organizations = {
  // Every member reads notes. Editors, admins and owners write them.
  roles: { member: ['notes:read'], editor: ['notes:write'] },
}

/**
 * Creates the table, as its owner.
 * @param role the role as which the app connects: neither the owner of the table nor a superuser
 */
export async function createNotes (sql: Sql, { schema, role }: { schema: string, role: string }): Promise<void> {
  const notes = sql`${sql(schema)}.app_notes`
  await sql`create table if not exists ${notes} (
    id uuid primary key default gen_random_uuid(),
    organization_id uuid not null references ${sql(schema)}.organizations (id) on delete cascade,
    text text not null
  )`
  await sql`create index if not exists app_notes_organization on ${notes} (organization_id)`
  await sql`alter table ${notes} enable row level security`
  // Also for the owner of the table, as which migrations and jobs run.
  await sql`alter table ${notes} force row level security`
  await sql`drop policy if exists of_organization on ${notes}`
  // A connection without the setting, and one whose transaction has ended, sees nothing.
  await sql`create policy of_organization on ${notes}
    using (organization_id = nullif(current_setting('app.organization', true), '')::uuid)`
  await sql`grant usage on schema ${sql(schema)} to ${sql(role)}`
  await sql`grant select, insert, update, delete on ${notes} to ${sql(role)}`
}

/** Adds the routes. `sql` is the app's own pool, which connects as the role. */
export function addNotes (app: FastifyInstance, sql: Sql, schema: string): void {
  const { requireOrganization } = app.usher
  const [mayRead, mayWrite] = [requireOrganization('notes:read'), requireOrganization('notes:write')]
  const body = { type: 'object', required: ['text'], properties: { text: { type: 'string', maxLength: 10_000 } } }

  app.get('/notes', { onRequest: mayRead }, async (request) =>
    inOrganization(sql, request, (trx) => trx<Note[]>`select id, text from ${trx(schema)}.app_notes order by id`))

  // Membership may end while the body arrives.
  app.post<{ Body: { text: string } }>('/notes', {
    schema: { body }, onRequest: mayWrite, preHandler: mayWrite,
  }, async (request, reply) => {
    const [note] = await inOrganization(sql, request, (trx, id) => trx<Note[]>`
      insert into ${trx(schema)}.app_notes (organization_id, text) values (${id}, ${request.body.text}) returning id, text`)
    return reply.code(201).send(note)
  })
}

/** Runs statements that see the rows of the organisation of the token only, whatever their conditions are. */
export async function inOrganization<Result> (
  sql: Sql, { actor }: FastifyRequest, work: (trx: TransactionSql, id: string) => Promise<Result>
): Promise<Result> {
  const { id } = actor!.organization!
  return await sql.begin(async (trx) => {
    // `true`: until the transaction ends, so that the next user of the connection has no part of it.
    await trx`select set_config('app.organization', ${id}, true)`
    return work(trx, id)
  }) as Result
}
