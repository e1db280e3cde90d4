import { isIP } from 'node:net'
import { PasskeysUnavailable } from '../../../schema/sign-in/passkeys.ts'
import { normalizeOrigin } from '../../../schema/http/origin.ts'
import type { Options } from '../../../schema/options/options.ts'

/** For whom passkeys are made: a domain, and the origins whose pages may use them. */
export interface RelyingParty {
  id: string
  name: string
  origins: string[]
}

/** Where a request was sent to, by its header `Host`. */
export interface Requested { protocol: string, host: string }

/**
 * Creates the functions that know the relying party. It is the host of `publicUrl`, because the header `Host` is what
 * the client chooses. Without a public URL, only a browser on this machine can have passkeys.
 */
export function createRelyingParty (
  { publicUrl, origins, pages: { productName: name } }: Pick<Options, 'publicUrl' | 'origins' | 'pages'>
) {
  const url = publicUrl === undefined ? undefined : new URL(publicUrl)
  const further = origins.map(normalizeOrigin).filter((origin) => origin !== undefined)
  const fixed: RelyingParty | undefined = url && isUsable(url)
    ? { id: url.hostname, name, origins: [...new Set([url.origin, ...further])] }
    : undefined

  return {
    /** Returns the relying party of a request. Throws `PasskeysUnavailable`. */
    of ({ protocol, host }: Requested): RelyingParty {
      if (fixed) return fixed
      const origin = normalizeOrigin(`${protocol}://${host}`)
      if (url || origin === undefined || new URL(origin).hostname !== 'localhost') throw new PasskeysUnavailable()
      return { id: 'localhost', name, origins: [...new Set([origin, ...further])] }
    },

    /** Returns the origins whose pages may use the passkeys of the public URL (WebAuthn Level 3, 5.11). */
    related: (): string[] => fixed?.origins.filter((origin) => /^https?:/.test(origin)) ?? [],
  }
}

// Browsers have passkeys for domains only, and on pages that nobody on the network can change.
function isUsable ({ protocol, hostname }: URL): boolean {
  const isLocal = hostname === 'localhost' || hostname.endsWith('.localhost')
  return isLocal || (protocol === 'https:' && isIP(hostname) === 0 && !hostname.startsWith('['))
}
