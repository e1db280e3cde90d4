import type { StoredWay } from '../../../db/sign-in/ways.ts'
import type { CredentialKind } from '../../../schema/sign-in/ways.ts'

const names: Readonly<Record<CredentialKind, readonly [one: string, more: string]>> = {
  passkey: ['passkey', 'passkeys'],
  totp: ['authenticator app', 'authenticator apps'],
  identity: ['identity at a provider', 'identities at providers'],
  'api-key': ['API key', 'API keys'],
}

/** Returns how many ways to sign in there are of each kind, such as "2 passkeys, 1 API key". */
export const countWays = (kinds: readonly CredentialKind[]): string =>
  [...Map.groupBy(kinds, (kind) => kind)]
    .map(([kind, { length }]) => `${length} ${names[kind][length === 1 ? 0 : 1]}`).join(', ')

/** Returns lines that name the ways to sign in that a user still has, with the dates when they were added. */
export const describeWays = (ways: readonly StoredWay[]): string => [
  'The user still has, and may have from somebody else:',
  ...ways.map(({ kind, name, addedAt }) =>
    `  ${names[kind][0]}${name === null ? '' : ` ${name}`}, added ${addedAt.toISOString().slice(0, 16).replace('T', ' ')} UTC`),
].join('\n')

/** Returns a way to sign in as the JSON of a command has it. */
export const showWay = ({ kind, id, name, addedAt }: StoredWay) => ({ kind, id, name, addedAt: addedAt.toISOString() })
