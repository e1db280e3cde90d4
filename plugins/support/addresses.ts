import type { LookupAddress } from 'node:dns'
import { lookup as lookupOfSystem, Resolver } from 'node:dns/promises'
import { BlockList, isIP, type LookupFunction } from 'node:net'

const TRIES = 2

// Addresses that are not of the public Internet (IANA special-purpose registries): own network, private, carrier-grade
// NAT, loopback, link-local with the metadata services of clouds, protocol assignments, documentation, 6to4 relays,
// benchmarks, multicast, reserved.
const special = new BlockList()
for (const range of [
  '0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24',
  '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24',
  '224.0.0.0/4', '240.0.0.0/4',
  // Of the global unicast addresses: protocol assignments with Teredo, documentation, and 6to4, which contains an IPv4
  // address.
  '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20',
]) add(special, range)

// Everything else in IPv6 is special: loopback, unique local, link-local, multicast, IPv4-mapped addresses and those of
// NAT64.
const globalUnicast = new BlockList()
add(globalUnicast, '2000::/3')

function add (list: BlockList, range: string): void {
  const [network = '', bits] = range.split('/')
  list.addSubnet(network, Number(bits), isIP(network) === 4 ? 'ipv4' : 'ipv6')
}

/** Returns whether an IP address belongs to the public Internet. */
export function isPublicAddress (address: string): boolean {
  const version = isIP(address)
  if (version === 4) return !special.check(address, 'ipv4')
  return version === 6 && !address.includes('%') && globalUnicast.check(address, 'ipv6') &&
    !special.check(address, 'ipv6')
}

/** Resolves a host name to its addresses. */
export type Resolve = (host: string) => Promise<LookupAddress[]>

/**
 * Returns a function that resolves with the DNS servers of the system, each of which has `timeoutMs` to answer. Unlike
 * `dns.lookup`, this does not occupy the thread pool, in which passwords are checked, while a DNS server does not
 * answer. It does not know /etc/hosts.
 */
export const createDnsResolve = (timeoutMs: number): Resolve => async (host) => {
  const resolver = new Resolver({ timeout: timeoutMs, tries: TRIES })
  const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
  const addresses = answers.flatMap((answer, index) =>
    answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family: index === 0 ? 4 : 6 })) : [])
  if (addresses.length > 0) return addresses
  throw (answers[0] as PromiseRejectedResult).reason
}

/** Resolves as other programs on this machine do. */
export const resolveBySystem: Resolve = (host) => lookupOfSystem(host, { all: true })

/**
 * Returns the `lookup` of a connection, which then uses exactly the addresses that were checked, so that a second
 * answer of the DNS cannot lead elsewhere. It fails if one of the addresses is not public.
 */
export function createLookup (resolve: Resolve, allowPrivateAddresses: boolean): LookupFunction {
  return (host, { all }, done) => {
    resolve(host).then((addresses) => {
      if (!allowPrivateAddresses) for (const { address } of addresses) requirePublic(address)
      if (all) done(null, addresses)
      else done(null, addresses[0]!.address, addresses[0]!.family)
    }).catch((error) => done(error, ''))
  }
}

/** Throws if a host is an IP address that is not public. A connection to an IP address does not call `lookup`. */
export function requirePublicHost (url: URL): void {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (isIP(host) > 0) requirePublic(host)
}

function requirePublic (address: string): void {
  if (!isPublicAddress(address)) {
    throw new Error(`the address ${address} is not public: allowPrivateAddresses permits it`)
  }
}
