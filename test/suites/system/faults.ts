import { runTogether } from '../../helpers/run-together.ts'

runTogether('faults/{batches,client-gone,idempotency,late-writes,node-killed,stalled-statements}.test.ts')
