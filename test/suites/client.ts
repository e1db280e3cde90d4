import { runTogether } from '../helpers/run-together.ts'

runTogether('client/*.test.ts')
