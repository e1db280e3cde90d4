import { runTogether } from '../helpers/run-together.ts'

runTogether('plugins/api/*.test.ts')
