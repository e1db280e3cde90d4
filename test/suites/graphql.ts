import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/graphql/{clients,cost,http,limits,live-limits,mutations,queries,turns}.test.ts')
