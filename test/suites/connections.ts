import { runTogether } from '../helpers/run-together.ts'

runTogether('db/driver/*.test.ts')
