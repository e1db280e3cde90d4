import { Type, type Static } from '@sinclair/typebox'

/** The address of a clamd: a host and a port, or the path of a socket. */
const CLAMD = '^(/[^\\0]+|(\\[[\\da-fA-F:.]+\\]|[A-Za-z0-9._-]+):[1-9]\\d{0,4})$'

/** The option `scan`: who looks at the bytes of an upload before anybody can read them (contract 23.3). */
export const Scan = Type.Object({
  clamd: Type.Optional(Type.String({
    maxLength: 300, pattern: CLAMD, description: 'The clamd that looks at uploads: `host:port`, or the path of its socket',
  })),
  seconds: Type.Number({
    default: 30,
    minimum: 0.1,
    maximum: 600,
    description: 'Seconds that the scan of an upload may take, with the wait for its turn and the hook `beforeUploadPublish`',
  }),
}, { default: {}, additionalProperties: false, description: 'How uploads are scanned before anybody can read them' })

export type ScanOptions = Readonly<Static<typeof Scan>>

// Allows undefined, for hosts that compile with exactOptionalPropertyTypes and pass on values that may be undefined.
export type GivenScan = { [Name in keyof ScanOptions]?: ScanOptions[Name] | undefined }
