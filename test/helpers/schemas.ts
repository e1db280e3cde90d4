import postgres, { type Sql } from 'postgres'
import root, { type Test } from 'tap'
import { openDatabase } from '../../db/driver/connection.ts'
import { migrate } from '../../db/migrations/index.ts'
import { MODEL, STATE, testDatabaseUrl, uniqueSchema } from './database.ts'

// Creating a schema takes more CPU time than most tests, so a test that has ended gives its schema to the next one:
// empty, and only if it has not changed its structure.
const SPARE = `spare_${STATE}`

// Returns a text that changes with the definition of anything in a schema.
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

/** Prepares the server of a test run. */
export async function prepareSchemas (url: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    // Several runs may share the server.
    await sql`select pg_advisory_lock(1)`
    const [found] = await sql<[{ hasSpare: boolean, hasModel: boolean }]>`select
      exists (select from pg_namespace where nspname = ${SPARE}) as "hasSpare",
      exists (select from pg_database where datname = ${MODEL}) as "hasModel"`
    if (!found.hasSpare) {
      await sql.unsafe(`create schema ${SPARE}; ${version}; ${empty};
        create table ${SPARE}.names (name text primary key, version text not null)`)
    }
    if (found.hasModel) return
    // It has the name when it is complete.
    await sql.unsafe(`drop database if exists new_${MODEL}`)
    await sql.unsafe(`create database new_${MODEL}`)
    await create(Object.assign(new URL(url), { pathname: `new_${MODEL}` }).href, 'usher')
    await sql.unsafe(`alter database new_${MODEL} rename to ${MODEL}`)
  } finally {
    await sql.end()
  }
}

async function create (database: string, schema: string): Promise<void> {
  const { db, close } = openDatabase({ database, schema, poolSize: 2, log: console })
  await migrate(db, schema).finally(close)
}

// A promise, because a file may create an app for all of its tests while the first of these runs.
let opened: Promise<Sql> | undefined

async function open (): Promise<Sql> {
  const sql = postgres(await testDatabaseUrl(), { max: 1, onnotice: () => {}, connection: { lock_timeout: 1000 } })
  root.teardown(() => sql.end())
  return sql
}

/**
 * Returns the name of an empty schema that is up to date. When the test ends, another test may get the schema, so close
 * whatever uses it in teardowns that are added later.
 */
export async function takeSchema (t: Test): Promise<string> {
  const sql = await (opened ??= open())
  const names = sql(`${SPARE}.names`)
  const [spare = await createSpare(sql, t)] = await sql<{ name: string, version: string }[]>`
    delete from ${names} where name = (select name from ${names} limit 1 for update skip locked) returning name, version`
  t.teardown(() => give(spare))
  return spare.name
}

async function createSpare (sql: Sql, t: Test): Promise<{ name: string, version: string }> {
  const name = uniqueSchema(t.name)
  await create(await testDatabaseUrl(), name)
  const [row] = await sql<[{ version: string }]>`select ${sql(SPARE)}.version(${name})`
  return { name, ...row }
}

// A schema that is not as it was remains unused.
async function give ({ name, version }: { name: string, version: string }): Promise<void> {
  const sql = await opened!
  const functions = sql(SPARE)
  await sql.begin(async (sql) => {
    const [row] = await sql<{ same: boolean }[]>`select ${functions}.version(${name}) = ${version} as same`
    if (!row!.same) return
    await sql`call ${functions}.empty(${name})`
    await sql`insert into ${functions}.names values (${name}, ${version})`
  }).catch((error: unknown) => { if (!(error instanceof postgres.PostgresError)) throw error })
}
