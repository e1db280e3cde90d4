import postgres, { type Sql } from 'postgres'
import root, { type Test } from 'tap'
import { openDatabase } from '../../db/driver/connection.ts'
import { migrate } from '../../db/migrations/index.ts'
import { testDatabaseUrl, uniqueSchema } from './database.ts'

// Creating a schema with its hundred tables and indexes takes more CPU time than most tests, so an app that has closed
// gives its schema to the next one: empty, and only if no test has changed its structure.
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

// Returns a text that changes with the definition of anything in a schema. It takes less time than `structure`, and
// differs between schemas, so it only tells whether one schema is still as it was.
const version = `
  create function ${SPARE}.version(given text) returns text language sql as $$
    with relations as (select oid, xmin from pg_class where relnamespace = given::regnamespace),
    parts (oid, xmin) as (
      table relations
      union all select attrelid, pg_attribute.xmin from relations join pg_attribute on attrelid = relations.oid
      union all select adrelid, pg_attrdef.xmin from relations join pg_attrdef on adrelid = relations.oid
      union all select conrelid, pg_constraint.xmin from relations join pg_constraint on conrelid = relations.oid
      union all select tgrelid, pg_trigger.xmin from relations join pg_trigger on tgrelid = relations.oid
      union all select ev_class, pg_rewrite.xmin from relations join pg_rewrite on ev_class = relations.oid
      union all select oid, xmin from pg_proc where pronamespace = given::regnamespace
    )
    select md5(string_agg(concat(oid, ' ', xmin), ',' order by oid, xmin::text)) from parts
  $$`

// Empties a schema. Triggers may write to tables that are empty already, so it looks again until all are. Fails if it
// cannot.
const empty = `
  create procedure ${SPARE}.empty(given text) language plpgsql as $$
  declare
    look text;
    filled regclass[];
    relation regclass;
  begin
    select string_agg(format('select %L::regclass as name where exists (select from %s)', oid::regclass, oid::regclass), ' union all ')
      into look from pg_class where relnamespace = given::regnamespace and relkind = 'r' and relname <> 'migrations';
    for round in 1..5 loop
      execute format('select array_agg(name) from (%s) as filled', look) into filled;
      exit when filled is null;
      foreach relation in array filled loop
        execute format('delete from %s', relation);
      end loop;
    end loop;
    if filled is not null then raise exception 'the schema % is never empty', given; end if;
    perform setval(seqrelid, seqstart, false) from pg_class join pg_sequence on seqrelid = oid where relnamespace = given::regnamespace;
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
      await sql.unsafe(`create schema ${SPARE}; ${structure}; ${version}; ${empty};
        create table ${SPARE}.names (name text primary key, version text not null);
        create table ${SPARE}.model as select ${SPARE}.structure('${MODEL}')`)
    })
  } finally {
    await sql.end()
  }
}

// A promise, because a file may create an app for all of its tests while the first of these runs.
let opened: Promise<Sql> | undefined

async function open (): Promise<Sql> {
  const sql = postgres(await testDatabaseUrl(), { max: 1, onnotice: () => {}, connection: { lock_timeout: 1000 } })
  root.teardown(() => sql.end())
  return sql
}

/**
 * Returns the name of an empty schema that is up to date, or else of one that does not exist. When the test ends,
 * another test may get the schema, so close whatever uses it in teardowns that are added later.
 */
export async function takeSchema (t: Test): Promise<string> {
  const sql = await (opened ??= open())
  const names = sql(`${SPARE}.names`)
  const [spare] = await sql<{ name: string, version: string }[]>`
    delete from ${names} where name = (select name from ${names} limit 1 for update skip locked) returning name, version`
  const name = spare?.name ?? uniqueSchema(t.name)
  t.teardown(() => give(name, spare?.version))
  return name
}

// A schema that is not as it was remains unused. Without its version, a schema is new and compared with the model.
async function give (name: string, version?: string): Promise<void> {
  const sql = await opened!
  const functions = sql(SPARE)
  await sql.begin(async (sql) => {
    const [row] = version
      ? await sql<{ same: boolean }[]>`select ${functions}.version(${name}) = ${version} as same`
      : await sql<{ same: boolean }[]>`select ${functions}.structure(${name}) = (table ${functions}.model) as same`
    if (!row!.same) return
    await sql`call ${functions}.empty(${name})`
    await sql`insert into ${functions}.names values (${name}, ${functions}.version(${name}))`
  }).catch((error: unknown) => { if (!(error instanceof postgres.PostgresError)) throw error })
}
