import { runTogether } from '../helpers/run-together.ts'

runTogether(
  'routes/users-{disabled,policy,preconditions,sessions,versions,visibility}.test.ts',
  'plugins/users/*.test.ts',
  'policy.test.ts'
)
