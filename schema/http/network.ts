import { isIPv4, isIPv6, SocketAddress } from 'node:net'

/**
 * The address of a client that has none, because a proxy has sent something else, such as an obfuscated identifier (RFC
 * 7239 6.3). Whatever is no address is recorded as this, and is one network.
 */
export const UNKNOWN = 'unknown'

/** A network that an address belongs to. */
export interface Network {
  /** For example `192.0.2.1`, `192.0.2.0/24` or `2001:db8:0:1::/64`. */
  readonly name: string
  /** How many times the limit of the narrowest network it has, because it has more clients. */
  readonly factor: number
}

// The longest text of an IPv6 address with a zone and a port. A header may be much longer.
const LONGEST = 128
const REMEMBERED = 1000
// Of what all clients together may use, a network may use this share.
const SHARE = 1 / 4

/**
 * The prefixes of the networks of an address, narrowest first, and how many times the limit of the narrowest one they
 * have. A client with one IPv6 address usually has all 2^64 addresses of its /64, a customer a /56, and a site a /48.
 */
export const PREFIXES = {
  ipv4: [{ bits: 32, factor: 1 }, { bits: 24, factor: 16 }],
  ipv6: [{ bits: 64, factor: 1 }, { bits: 56, factor: 4 }, { bits: 48, factor: 16 }],
} as const

interface Parsed { readonly address: string, readonly networks: readonly Network[] }

// Most requests come from few addresses.
const known = new Map<string, Parsed>()

/**
 * Returns a client address in its canonical form (RFC 5952), without the port that some proxies add and without a zone.
 * It is the IPv4 address for one that is mapped into IPv6, `unknown` for what is no address, and empty for a client of
 * a Unix socket, which has none.
 */
export const addressOf = (text = ''): string => parse(text).address

/**
 * Returns the networks that a client address belongs to, narrowest first: an IPv4 address itself and its /24, or the
 * /64, the /56 and the /48 of an IPv6 address. All limits per network are counted for each of them, so that nobody can
 * multiply a limit by changing addresses (`test/throttle/all-limits.test.ts`).
 */
export const networksOf = (text = ''): readonly Network[] => parse(text).networks

/** Returns the narrowest of the networks of a client address. */
export const networkOf = (text = ''): string => networksOf(text)[0]!.name

/** Returns the widest of the networks of a client address. */
export const widestNetworkOf = (text = ''): string => networksOf(text).at(-1)!.name

/**
 * Returns the limit of a network: that of the narrowest one, multiplied for a wider one, but at most a quarter of what
 * all networks together may use.
 */
export const limitOf = ({ factor }: Pick<Network, 'factor'>, perNetwork: number, total: number): number =>
  Math.max(perNetwork, Math.min(perNetwork * factor, total * SHARE))

function parse (text: string): Parsed {
  const found = known.get(text)
  if (found) return found
  const address = toAddress(text)
  const parsed = {
    address,
    networks: isIPv4(address)
      ? networksOfIPv4(address)
      : isIPv6(address) ? networksOfIPv6(address) : [{ name: address, factor: 1 }],
  }
  if (known.size >= REMEMBERED) known.clear()
  if (text.length <= LONGEST) known.set(text, parsed)
  return parsed
}

function toAddress (text: string): string {
  if (text === '' || isIPv4(text)) return text
  if (text.length > LONGEST) return UNKNOWN
  const [, plain = text.replace(/^([\d.]+):\d+$/, '$1')] = /^\[([^\]]*)\](?::\d+)?$/.exec(text) ?? []
  if (isIPv4(plain)) return plain
  const [address = ''] = plain.split('%')
  if (!isIPv6(address)) return UNKNOWN
  const { address: canonical } = new SocketAddress({ address, family: 'ipv6' })
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(canonical)?.[1] ?? canonical
}

function networksOfIPv4 (address: string): readonly Network[] {
  const [narrow, wide] = PREFIXES.ipv4
  return [
    { name: address, factor: narrow.factor },
    { name: `${address.slice(0, address.lastIndexOf('.'))}.0/${wide.bits}`, factor: wide.factor },
  ]
}

function networksOfIPv6 (address: string): readonly Network[] {
  const [head = '', tail] = address.split('::')
  const groups = (text = '') =>
    text === '' ? [] : text.split(':').flatMap((group) => group.includes('.') ? ['0', '0'] : [group])
  const zeros = tail === undefined ? 0 : 8 - groups(head).length - groups(tail).length
  const [first, second, third, fourth = '0'] = [...groups(head), ...Array<string>(zeros).fill('0'), ...groups(tail)]
  const site = `${first}:${second}:${third}`
  const groupsOf = { 64: `:${fourth}`, 56: `:${(parseInt(fourth, 16) & 0xff00).toString(16)}`, 48: '' }
  return PREFIXES.ipv6.map(({ bits, factor }) => ({ name: `${site}${groupsOf[bits]}::/${bits}`, factor }))
}
