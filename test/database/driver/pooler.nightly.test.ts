import { sql, type Kysely } from 'kysely'
import t from 'tap'
import type { Tables } from '../../../db/tables/index.ts'
import { openConnection } from '../../helpers/connection.ts'
import { createPooler } from '../../helpers/pooler.ts'
import { testDatabaseUrl } from '../../helpers/database.ts'

type Db = Kysely<Tables>

// A statement without parameters and different ones with, at the same time, as reads and as writes.
async function runMany (db: Db): Promise<void> {
  const one = async (index: number): Promise<number> => {
    const value = index % 2 === 0
      ? sql<number>`${sql.lit(index)}::int`
      : sql<number>`${index}::int + ${sql.lit(index)} - ${index}::int`
    const { rows: [row] } = index % 3 === 0
      ? await sql<{ value: number }>`select ${value} as value`.execute(db)
      : { rows: [await db.selectNoFrom(value.as('value')).executeTakeFirstOrThrow()] }
    return row!.value
  }
  const expected = Array.from({ length: 60 }, (_, index) => index)
  t.strictSame(await Promise.all(expected.map(one)), expected)
}

const isOrdinary = (text: string) => !text.includes('pg_prepared_statements')

t.test('8 through a pooler no statement is sent before the one before it was answered, and none is prepared', async (t) => {
  const pooler = await createPooler(t, await testDatabaseUrl())
  const { db } = await openConnection(t, { database: pooler.url })
  await runMany(db)
  await db.transaction().execute(async (trx) => {
    t.strictSame((await sql`select ${1}::int as one`.execute(trx)).rows, [{ one: 1 }])
  })
  t.strictSame(pooler.overlapping, [])
  t.strictSame(pooler.prepared.filter(isOrdinary), [])
})

t.test('8 through a pooler that keeps account of prepared statements, statements are prepared, one after the other', async (t) => {
  const pooler = await createPooler(t, await testDatabaseUrl(), { renames: true })
  const { db } = await openConnection(t, { database: pooler.url })
  await runMany(db)
  t.strictSame(pooler.overlapping, [])
  t.ok(pooler.prepared.filter(isOrdinary).length > 0)
})

t.test('8 with prepare=false no statement is sent before the one before it was answered, and none is prepared', async (t) => {
  const pooler = await createPooler(t, await testDatabaseUrl(), { renames: true })
  const { db } = await openConnection(t, { database: `${pooler.url}?prepare=false` })
  await runMany(db)
  t.strictSame([pooler.overlapping, pooler.prepared], [[], []])
})
