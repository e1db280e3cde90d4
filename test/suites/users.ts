import { runTogether } from '../helpers/run-together.ts'

runTogether(
  'routes/{spellings,users}.test.ts', 'routes/users-{batched-updates,fields*,list,model,patch,search}.test.ts'
)
