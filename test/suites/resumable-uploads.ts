import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/resumable-uploads{,-streams}.test.ts')
