import { runTogether } from '../helpers/run-together.ts'

runTogether('plugins/posts/*.test.ts')
