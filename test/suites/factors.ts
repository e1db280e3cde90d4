import { runTogether } from '../helpers/run-together.ts'

runTogether(
  'routes/{step-up,step-up-mail,login-mail,login-mail-limits,ways-in,passkeys,totp,second-factor}.test.ts',
  'routes/{second-factor-required,api-keys}.test.ts',
  'plugins/auth/{totp/*,api-keys/*,credentials,passkey-{challenges,verifier}}.test.ts'
)
