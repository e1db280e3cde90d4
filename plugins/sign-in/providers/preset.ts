import type { ProviderTokens } from '../../../db/sign-in/providers/tokens.ts'

/** Who somebody is, as a provider says. The texts may be anything. */
export interface Profile {
  issuer: string
  subject: string
  /** The session at the provider. */
  sid: string | undefined
  email: string | undefined
  /** Whether the address belongs to the user, as far as the provider is trusted with that. */
  isEmailProven: boolean
  name: string | undefined
  /** Why the address, or the proof of it, could not be read. A login that needs them throws it. */
  failure?: Error | undefined
  amr: readonly string[]
  /** When the user was authenticated at the provider, in seconds since 1970. */
  authTime: number | undefined
  tokens?: ProviderTokens | undefined
}

/** What a provider says about a user: the claims of the ID token and of the userinfo endpoint. They may be anything. */
export type Claims = Readonly<Record<string, unknown>>

/** What is special about a provider. */
export interface Preset {
  /** Its name on the pages. */
  name: string
  issuer: string
  scopes: readonly string[]
  /** Whether it speaks OAuth 2 only, without ID tokens. */
  isOAuth?: boolean
  /**
   * Whether it logs a user in once more if a step-up asks it to (`prompt=login`, `max_age=0`), and proves that by
   * `auth_time`, without which the step-up is refused.
   */
  reauthenticates: boolean
  /** Further parameters of the authorization request. */
  parameters?: Readonly<Record<string, string>>
  /**
   * Returns whether the address in the claims belongs to the user, as the provider promises it. Without it, no address
   * does unless the option `trustEmail` is set.
   */
  isEmailProven?: (claims: Claims) => boolean
}
