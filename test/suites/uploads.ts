import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/uploads*.test.ts', 'plugins/uploads/*.test.ts')
