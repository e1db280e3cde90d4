/** What a host adds to Usher's types: see docs/host.md. A host extends it by declaration merging. */
export interface Register {}
