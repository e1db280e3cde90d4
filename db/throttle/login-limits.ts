import { foldEmail } from '../../schema/strings/address.ts'
import { clearLoginFailures, hashAddress } from './login-failures.ts'
import type { Database } from '../tables/index.ts'
import {
  clearLimits, limitKey, LOGIN_OF_ACCOUNT, LOGIN_OF_ACCOUNT_AND_NETWORK, MAIL_CODE_OF_ACCOUNT, SECOND_FACTOR_OF_ACCOUNT,
} from './throttle.ts'

/** The account whose password was set, and the network from which its owner has set it by a link. */
export interface LoginLimits { userId: string, email: string, network?: string | undefined }

/**
 * Starts the limits of an account's failed logins anew, because its password was set by a link or an operator
 * (contract 11.6): no failure counts any more, and no network is recognised but that of the owner. The others may be
 * those of whoever knew the former password. The locks delay the logins of others, so call it last in the
 * transaction, which has locked the user.
 */
export async function restartLoginLimits (trx: Database, { userId, email, network }: LoginLimits): Promise<void> {
  await clearLoginFailures(trx, email)
  const recognised = await trx.deleteFrom('recognised_networks').where('user_id', '=', userId)
    .returning('network').execute()
  if (network) await trx.insertInto('recognised_networks').values({ user_id: userId, network }).execute()
  const account = foldEmail(email)
  const networks = [...recognised.map((row) => row.network), ...network ? [network] : []]
  await clearLimits(trx, [
    limitKey(SECOND_FACTOR_OF_ACCOUNT, [userId]), limitKey(LOGIN_OF_ACCOUNT, [account]),
    limitKey(MAIL_CODE_OF_ACCOUNT, [userId]), limitKey(MAIL_CODE_OF_ACCOUNT, [hashAddress(email).toString('hex')]),
    ...networks.map((network) => limitKey(LOGIN_OF_ACCOUNT_AND_NETWORK, [account, network])),
  ])
}
