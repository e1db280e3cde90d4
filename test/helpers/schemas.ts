import postgres, { type Sql } from 'postgres'
import type { Test } from 'tap'
import { openDatabase } from '../../db/driver/connection.ts'
import { migrate } from '../../db/migrations.ts'
import { testDatabaseUrl, uniqueSchema } from './database.ts'

// Creating a schema with its hundred tables and indexes takes more CPU time than most tests, so an app that has closed gives its schema to the
// next one: empty, and only if no test has changed its structure.
const MODEL = 'model_of_tests'
const SPARE = 'spare_schemas'

// Returns a text that is the same for all schemas with the same structure, whatever their names are.
const structure = `
  create function ${SPARE}.structure(given text) returns text language sql as $$
    with relations as (select * from pg_class where relnamespace = given::regnamespace),
    parts (part) as (
      select concat_ws(' ', relkind, relname, relacl, reloptions, relrowsecurity) from relations
      union all select concat_ws(' ', relname, attname, format_type(atttypid, atttypmod), attnotnull, attgenerated, attidentity, pg_get_expr(adbin, adrelid))
        from relations join pg_attribute on attrelid = relations.oid and attnum > 0 left join pg_attrdef on adrelid = attrelid and adnum = attnum
        where relkind in ('r', 'v')
      union all select pg_get_indexdef(oid) from relations where relkind = 'i'
      union all select concat_ws(' ', conname, convalidated, pg_get_constraintdef(pg_constraint.oid)) from pg_constraint where connamespace = given::regnamespace
      union all select concat_ws(' ', tgenabled, pg_get_triggerdef(pg_trigger.oid)) from relations join pg_trigger on tgrelid = relations.oid and not tgisinternal
      union all select pg_get_ruledef(pg_rewrite.oid) from relations join pg_rewrite on ev_class = relations.oid
      union all select pg_get_functiondef(oid) from pg_proc where pronamespace = given::regnamespace
    )
    select md5(string_agg(replace(part, given, ''), ',' order by replace(part, given, ''))) from parts
  $$`

// Empties a schema. Triggers may write to tables that are empty already, so it looks again until all are. Fails if it cannot.
const empty = `
  create procedure ${SPARE}.empty(given text) language plpgsql as $$
  declare
    relation regclass;
    deleted bigint;
    filled boolean := true;
  begin
    for round in 1..5 loop
      exit when not filled;
      filled := false;
      for relation in select oid from pg_class where relnamespace = given::regnamespace and relkind = 'r' and relname <> 'migrations' loop
        execute format('delete from %s', relation);
        get diagnostics deleted = row_count;
        filled := filled or deleted > 0;
      end loop;
    end loop;
    if filled then raise exception 'the schema % is never empty', given; end if;
    for relation in select oid from pg_class where relnamespace = given::regnamespace and relkind = 'S' loop
      execute format('alter sequence %s restart', relation);
    end loop;
  end $$`

/** Prepares the database of a test run. */
export async function prepareSchemas (url: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    const { db, close } = openDatabase({ database: url, schema: MODEL, poolSize: 2, log: console })
    await migrate(db, MODEL).finally(close)
    await sql.begin(async (sql) => {
      // Several runs may share the server.
      await sql`select pg_advisory_xact_lock(1)`
      if ((await sql`select 1 from pg_namespace where nspname = ${SPARE}`).length > 0) return
      await sql.unsafe(`create schema ${SPARE}; ${structure}; ${empty}; create table ${SPARE}.names (name text primary key);
        create table ${SPARE}.model as select ${SPARE}.structure('${MODEL}')`)
    })
  } finally {
    await sql.end()
  }
}

let opened: Sql | undefined

async function open (): Promise<Sql> {
  opened ??= postgres(await testDatabaseUrl(), { max: 1, idle_timeout: 1, onnotice: () => {}, connection: { lock_timeout: 1000 } })
  return opened
}

/**
 * Returns the name of an empty schema that is up to date, or else of one that does not exist. When the test ends, another test may get the
 * schema, so close whatever uses it in teardowns that are added later.
 */
export async function takeSchema (t: Test): Promise<string> {
  const sql = await open()
  const names = sql(`${SPARE}.names`)
  const [spare] = await sql<{ name: string }[]>`
    delete from ${names} where name = (select name from ${names} limit 1 for update skip locked) returning name`
  const name = spare?.name ?? uniqueSchema(t.name)
  t.teardown(() => give(name))
  return name
}

// A schema that is not as it was remains unused.
async function give (name: string): Promise<void> {
  const sql = await open()
  await sql.begin(async (sql) => {
    const [row] = await sql<{ same: boolean }[]>`select ${sql(SPARE)}.structure(${name}) = (table ${sql(SPARE)}.model) as same`
    if (!row!.same) return
    await sql`call ${sql(SPARE)}.empty(${name})`
    await sql`insert into ${sql(SPARE)}.names values (${name})`
  }).catch((error: unknown) => { if (!(error instanceof postgres.PostgresError)) throw error })
}
