import { runTogether } from '../helpers/run-together.ts'

runTogether(
  'routes/{step-up,ways-in,passkeys,totp,second-factor,second-factor-required,api-keys}.test.ts',
  'plugins/auth/{totp/*,api-keys/*,credentials,passkey-{challenges,verifier}}.test.ts'
)
