import { runTogether } from '../helpers/run-together.ts'

runTogether('db/*.test.ts')
