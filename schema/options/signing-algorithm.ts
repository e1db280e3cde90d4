const algorithms = ['EdDSA', 'ES256'] as const

/** An algorithm that signs access tokens: Ed25519 (RFC 8037), or ECDSA with P-256 and SHA-256 (RFC 7518 3.4). */
export type SigningAlgorithm = typeof algorithms[number]

/** All of them. Their signatures are equally long. */
export const signingAlgorithms: readonly SigningAlgorithm[] = algorithms

/** Returns whether a value, such as the `alg` of a token's header, names one of them. */
export function isSigningAlgorithm (value: unknown): value is SigningAlgorithm {
  return signingAlgorithms.some((algorithm) => algorithm === value)
}
