import { foldEmail } from '../../../schema/strings/address.ts'
import type { Claims } from './preset.ts'
import { emailOf, isNameLike } from './texts.ts'

// Apple and Cognito write the value as a text.
const TRUTHS = new Map<unknown, boolean>([[true, true], ['true', true], [false, false], ['false', false]])

/** Returns whether claims say that the address is verified, or undefined if they say neither. */
const verifiedIn = ({ email_verified: verified }: Claims): boolean | undefined => TRUTHS.get(verified)

/** Returns whether a provider says that it has verified the address. */
export const isVerified = (claims: Claims): boolean => verifiedIn(claims) === true

const addressIn = ({ email }: Claims): string | undefined => typeof email === 'string' ? emailOf(email) : undefined

/**
 * Returns whether an ID token says all that a login may need of a user, so that nothing else has to be asked.
 * @param needsProof whether the provider is trusted to say that an address is verified
 */
export const isComplete = (token: Claims, needsProof: boolean): boolean =>
  addressIn(token) !== undefined && isNameLike(token.name) && (!needsProof || verifiedIn(token) !== undefined)

/**
 * Returns the claims of an ID token, with what the userinfo endpoint says where the token says nothing that is of use.
 * Whether an address is verified, and what else is said about it, is taken for the address of the same claims only.
 */
export function mergeClaims (token: Claims, info: Claims): Claims {
  const [signed, asked] = [addressIn(token), addressIn(info)]
  const [own, other] = signed === undefined && asked !== undefined ? [info, token] : [token, info]
  const isSame = signed !== undefined && asked !== undefined && foldEmail(signed) === foldEmail(asked)
  const about = isSame ? other : {}
  return {
    ...token,
    email: own.email,
    email_verified: verifiedIn(own) ?? verifiedIn(about),
    hd: own.hd ?? about.hd,
    name: ['name', 'preferred_username', 'nickname'].flatMap((name) => [token[name], info[name]]).find(isNameLike),
  }
}
