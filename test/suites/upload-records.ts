import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/uploads-{private,records}.test.ts')
