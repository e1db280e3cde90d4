import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/graphql/{clients,cost,entity-tags,host,host-limits,host-start,http,invalid-documents,limits,live-limits,mutations,queries,turns}.test.ts')
