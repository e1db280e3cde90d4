import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { codeOf, createTotpSecret } from '../../plugins/sign-in/totp/codes.ts'
import { createUsher } from '../helpers/app.ts'

// Debian's package of the OATH Toolkit.
async function oathtool (secret: string, seconds: number, window = 0): Promise<string[]> {
  const words = ['--totp', '--base32', `--now=@${seconds}`, `--window=${window}`, secret]
  return (await promisify(execFile)('oathtool', words)).stdout.trim().split('\n')
}

t.test('16.4 codes are those of oathtool, whatever the secret and the time are', async (t) => {
  const times = [0, 29, 30, 59, 1_111_111_109, 2_000_000_000, 20_000_000_000]
  for (let count = 0; count < 20; count++) {
    const secret = createTotpSecret()
    for (const seconds of times) {
      const step = Math.floor(seconds / 30)
      const ours = [0, 1, 2].map((more) => codeOf(secret, step + more))
      t.strictSame(ours, await oathtool(secret, seconds, 2), `${secret} ${seconds}`)
    }
  }
})

t.test('16.4 a code of oathtool confirms the secret of the response', async (t) => {
  const { inject, createUser } = await createUsher(t)
  const { headers } = await createUser()
  const { uri } = (await inject('POST', '/api/auth/totp', { headers })).json()
  const secret = new URL(uri).searchParams.get('secret')!
  const [code] = await oathtool(secret, Math.floor(Date.now() / 1000))
  t.equal((await inject('POST', '/api/auth/totp/confirm', { headers, payload: { code } })).statusCode, 200)
})
