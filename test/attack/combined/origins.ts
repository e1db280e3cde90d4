/** Where an attack comes from, as the node sees it behind a proxy. */
export const origins = ['one', 'site', 'unrelated'] as const
export type Origin = typeof origins[number]

/** Where the honest users of `probes.ts` are: in a network of their own, or in the /48 of the attackers. */
export const places = ['elsewhere', 'neighbour'] as const
export type Place = typeof places[number]

const SITE = '2a0e:1111:2222'

/**
 * Returns an address of the attackers: always the same, one of a number of /64 of the same /48, or one of as many
 * networks that have nothing in common.
 */
export function attackerAddress (origin: Origin, networks: number, number: number): string {
  const index = number % networks
  switch (origin) {
    case 'one': return `${SITE}:0::1`
    case 'site': return `${SITE}:${index.toString(16)}::1`
    case 'unrelated': return `60.${index >> 8}.${index & 255}.9`
  }
}

/** Returns the address of an honest user: each has another /24, or another /56 of the attackers' /48. */
export function honestAddress (place: Place, index: number): string {
  return place === 'elsewhere' ? `90.0.${index}.1` : `${SITE}:${(255 - index).toString(16)}00::1`
}

/** Returns the headers that the proxy adds for an address, if there is a proxy. */
export const forwardedFor = (address: string | undefined): Record<string, string> =>
  address === undefined ? {} : { 'x-forwarded-for': address }
