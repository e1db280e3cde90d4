import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/{providers,provider-*}.test.ts', 'plugins/auth/provider-*.test.ts')
