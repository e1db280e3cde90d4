import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/console/*.test.ts')
