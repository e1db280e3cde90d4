import { insertAuditEntries } from '../../db/audit.ts'
import { LEAD_SECONDS, rotateSigningKey } from '../../db/signing-keys.ts'
import { longestLifeOf } from '../../plugins/auth/tokens.ts'
import { terminal } from './audit.ts'
import { withDatabase } from './with-database.ts'
import type { Command } from './command.ts'

export default {
  summary: 'Have another key sign the access tokens.',
  details: `Every node learns of the new key at once, and signs with it ${LEAD_SECONDS / 60} minutes later, when also those that cache the key\n` +
    'set know it. What the old key signed stays valid until it expires. Nodes do this by themselves once a month.\n\n' +
    '  --now  revoke every other key: the new one signs at once, and access tokens that others have signed are invalid.\n' +
    '         Sessions go on: clients refresh their tokens',
  options: { now: { type: 'boolean' } },
  run: ({ now }) => withDatabase(async ({ db, options }) => {
    const id = await rotateSigningKey(db, {
      secret: options.secret,
      ...now === true && { leadSeconds: 0, revoke: true },
      tokenSeconds: longestLifeOf(options),
      also: (trx) => insertAuditEntries(trx, [{ ...terminal, action: 'keys.rotate' }]),
    })
    console.log(now ? `Key ${id} signs from now on, and every other one is revoked.` : `Key ${id} signs in ${LEAD_SECONDS / 60} minutes.`)
  }),
} satisfies Command
