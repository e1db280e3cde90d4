import { RETURN_TO_CHARACTERS } from '../../schema/sign-in/providers.ts'
import type { Options } from '../../schema/options/options.ts'

// No URL has this origin, because the name is reserved (RFC 6761).
const HERE = 'http://here.invalid'

/**
 * Returns a function that checks where a user wants to go after the login: a path of this origin, such as
 * `/notes?page=2`, or a URL of `publicUrl` or of one of the option `origins`. The function returns the address, or
 * undefined if it is not allowed, and calls `onTooLong` for one that only is too long. It may then be used as a
 * `Location`, in a cookie and in a page.
 */
export function createReturnTo (
  { origins, publicUrl }: Pick<Options, 'origins' | 'publicUrl'>
): (given: unknown, onTooLong?: () => void) => string | undefined {
  const named = [...origins, ...publicUrl ? [publicUrl] : []].filter((origin) => URL.canParse(origin))
    .map((origin) => new URL(origin))
  const allowed = new Set(named.filter(isWeb).map(({ origin }) => origin))

  function read (given: string): string | undefined {
    if (given.startsWith('/')) return readPath(given)
    const url = URL.canParse(given) ? new URL(given) : undefined
    // A name before the host, as in https://example.com@example.org, only serves to deceive.
    return url && isWeb(url) && url.username === '' && url.password === '' && allowed.has(url.origin)
      ? url.href
      : undefined
  }

  return (given, onTooLong) => {
    // Browsers remove some of these characters, and read a backslash as a slash.
    if (typeof given !== 'string' || /[\s\\\p{C}]/u.test(given)) return undefined
    const address = read(given)
    if (address === undefined || address.length <= RETURN_TO_CHARACTERS) return address
    onTooLong?.()
    return undefined
  }
}

function readPath (given: string): string | undefined {
  if (!URL.canParse(given, HERE)) return undefined
  const { origin, pathname, search, hash } = new URL(given, HERE)
  // `/.//example.org` becomes `//example.org`, which is another host.
  return origin === HERE && !pathname.startsWith('//') ? `${pathname}${search}${hash}` : undefined
}

const isWeb = ({ protocol }: URL): boolean => protocol === 'https:' || protocol === 'http:'
