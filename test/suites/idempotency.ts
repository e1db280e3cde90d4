import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/idempotency*.test.ts', 'routes/graphql/idempotency.test.ts')
