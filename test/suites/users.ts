import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/users.test.ts', 'routes/users-{batched-updates,fields*,list,model,patch,search}.test.ts')
