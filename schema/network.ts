import { isIPv6 } from 'node:net'

/**
 * Returns the network of a client address: an IPv4 address itself, the /64 of an IPv6 address (`2001:db8:0:1::/64`), and
 * the IPv4 address for one that is mapped into IPv6. Limits and recognised networks are kept per network, because a client
 * with one IPv6 address usually has all 2^64 addresses of its /64. Clients of a Unix socket have no address and share one
 * network, the empty string.
 */
export function networkOf (address = ''): string {
  const [plain = ''] = address.split('%')
  if (!isIPv6(plain)) return plain
  // The URL parser writes an address in its canonical form (RFC 5952), with a mapped IPv4 address in hexadecimal.
  const { hostname } = new URL(`http://[${plain}]`)
  const [head = '', tail] = hostname.slice(1, -1).split('::')
  const groups = (text: string | undefined) => text ? text.split(':') : []
  const zeros = tail === undefined ? 0 : 8 - groups(head).length - groups(tail).length
  const all = [...groups(head), ...Array<string>(zeros).fill('0'), ...groups(tail)]
  if (/^(0:){5}ffff:/.test(all.join(':'))) {
    const bytes = all.slice(6).flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 255])
    return bytes.join('.')
  }
  return `${all.slice(0, 4).join(':')}::/64`
}
