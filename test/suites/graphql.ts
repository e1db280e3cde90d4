import { runTogether } from '../helpers/run-together.ts'

runTogether(
  'routes/graphql/{by-get,clients,cost,entity-tags,host,host-limits,host-start,http,invalid-documents}.test.ts',
  'routes/graphql/{limits,live-limits,mutations,queries,revoked-readers,turns,uploads}.test.ts'
)
