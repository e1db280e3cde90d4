import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/users*.test.ts', 'plugins/users/*.test.ts', 'policy.test.ts')
