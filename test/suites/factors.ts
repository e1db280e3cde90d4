import { runTogether } from '../helpers/run-together.ts'

runTogether(
  'routes/{step-up,login-mail,login-mail-limits,ways-in,passkeys,totp,second-factor,second-factor-required}.test.ts',
  'routes/api-keys.test.ts',
  'plugins/auth/{totp/*,api-keys/*,credentials,passkey-{challenges,verifier}}.test.ts'
)
