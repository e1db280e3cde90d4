import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/uploads{,-download,-host,-quota,-streams}.test.ts', 'plugins/uploads/*.test.ts')
