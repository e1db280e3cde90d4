import { runTogether } from '../helpers/run-together.ts'

runTogether(
  'routes/{api-keys,step-up-mail,login-mail,login-mail-limits,user-exports}.test.ts', 'plugins/auth/api-keys/*.test.ts'
)
