import { Kysely, PostgresIntrospector, PostgresQueryCompiler, type CompiledQuery, type QueryResult } from 'kysely'
import type { Tables } from '../tables/index.ts'

/**
 * Returns a database like `db` whose statements a function executes. It has no transactions: one that is begun is
 * rejected with the message.
 */
export function executedBy (
  db: Kysely<Tables>, executeQuery: <Row>(query: CompiledQuery) => Promise<QueryResult<Row>>, noTransaction: string
): Kysely<Tables> {
  const connection = {
    executeQuery,
    async * streamQuery (): AsyncGenerator<never> { throw new Error('Streaming is not supported') },
  }
  return new Kysely<Tables>({
    dialect: {
      // What is known of a database is known by its adapter.
      createAdapter: () => db.getExecutor().adapter,
      createDriver: () => ({
        async init () {},
        acquireConnection: async () => connection,
        async beginTransaction () { throw new Error(noTransaction) },
        async commitTransaction () {},
        async rollbackTransaction () {},
        async releaseConnection () {},
        async destroy () {},
      }),
      createIntrospector: (kysely) => new PostgresIntrospector(kysely),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  })
}
