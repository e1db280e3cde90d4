/** What a host adds to Usher's types: see docs/host.md. A host extends it by declaration merging. */
export interface Register {}

/**
 * The names of the roles that the host adds: those that it has added to `Register` as `roles`, which is either a union
 * of names or the type of the option.
 */
export type HostRole =
  Register extends { roles: infer Own } ? Own extends string ? Own : Extract<keyof Own, string> : never
