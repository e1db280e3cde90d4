import { insertAuditEntries } from '../../db/audit/audit.ts'
import { reencryptSignerKeys } from '../../db/sign-in/password-kinds.ts'
import { LEAD_SECONDS, reencryptSigningKeys, rotateSigningKey } from '../../db/access/signing-keys.ts'
import { reencryptTokens } from '../../db/sign-in/providers/tokens.ts'
import { reencryptTotp } from '../../db/sign-in/totp/totp.ts'
import { longestLifeOf } from '../../plugins/access/token-lifetime.ts'
import { terminalContext } from './audit.ts'
import { withDatabase } from './with-database.ts'
import type { Command } from './command.ts'

export default {
  details: 'All nodes read the new key at once. ' +
    `They sign with it after ${LEAD_SECONDS / 60} minutes, when services that cache the key set\n` +
    'have it as well. Tokens that the old key has signed stay valid until they expire. Nodes rotate the key by themselves\n' +
    'every 30 days, or as SIGNING_KEY_SECONDS says.\n\n' +
    'The new key has the algorithm of SIGNING_ALGORITHM, or that of the current key.\n\n' +
    'With another SECRET and the former one as FORMER_SECRET, everything that stays in the database is then encrypted with\n' +
    'SECRET: signing keys, the secrets of authenticator apps, the signer keys of Firebase projects and the tokens of\n' +
    'providers.\n\n' +
    '  --now  sign with the new key at once and revoke all others: access tokens that they have signed become invalid.\n' +
    '         Sessions do not end, and clients can refresh their tokens',
  json: '{ id, signsInSeconds: number, authenticatorApps: { encrypted: number, unreadable: number }, ' +
    'signerKeys: { encrypted: number, unreadable: number }, ' +
    'providerTokens: { encrypted: number, unreadable: number } }',
  options: { now: { type: 'boolean' } },
  run: ({ now }, _, shell) => withDatabase(shell, async ({ db, options }) => {
    const id = await rotateSigningKey(db, {
      secret: options.secret,
      algorithm: options.signingAlgorithm,
      ...now === true && { leadSeconds: 0, revoke: true },
      tokenSeconds: longestLifeOf(options),
      inTransaction: (trx) => insertAuditEntries(trx, [{ ...terminalContext, action: 'keys.rotate' }]),
    })
    const { secret, formerSecret } = options
    const apps = secret === undefined
      ? { encrypted: 0, unreadable: 0 }
      : await reencryptTotp(db, { secret, formerSecret })
    const signerKeys = secret === undefined
      ? { encrypted: 0, unreadable: 0 }
      : await reencryptSignerKeys(db, { secret, formerSecret })
    const tokens = secret === undefined
      ? { encrypted: 0, unreadable: 0 }
      : await reencryptTokens(db, { secret, formerSecret })
    if (secret !== undefined) await reencryptSigningKeys(db, { secret, formerSecret })
    return {
      text: [
        now
          ? `Key ${id} signs from now on. All others are revoked.`
          : `Key ${id} signs in ${LEAD_SECONDS / 60} minutes.`,
        ...apps.encrypted > 0
          ? [`Secrets of authenticator apps that are now encrypted with SECRET: ${apps.encrypted}.`]
          : [],
        ...apps.unreadable > 0
          ? [`Secrets of authenticator apps that cannot be decrypted: ${apps.unreadable}. Set FORMER_SECRET to the secret that has encrypted them,\n` +
            'and repeat this. If it is lost, their users need a recovery code, or users reset-second-factor.']
          : [],
        ...signerKeys.unreadable > 0
          ? [`Signer keys of Firebase projects that cannot be decrypted: ${signerKeys.unreadable}. Set FORMER_SECRET to the secret that has\n` +
            'encrypted them, and repeat this. If it is lost, their users need a new password.']
          : [],
        ...tokens.encrypted > 0
          ? [`Tokens of providers that are now encrypted with SECRET: ${tokens.encrypted}.`]
          : [],
        ...tokens.unreadable > 0
          ? [`Tokens of providers that cannot be decrypted: ${tokens.unreadable}. They are replaced at the next login.`]
          : [],
      ].join('\n'),
      json: {
        id,
        signsInSeconds: now ? 0 : LEAD_SECONDS,
        authenticatorApps: apps,
        signerKeys,
        providerTokens: tokens,
      },
    }
  }),
} satisfies Command
