import { runTogether } from '../helpers/run-together.ts'

runTogether(
  'routes/{step-up,ways-in,passkeys,totp,second-factor,second-factor-required}.test.ts',
  'plugins/auth/{totp/*,credentials,passkey-{challenges,verifier}}.test.ts'
)
