import { Type, type Static } from '@sinclair/typebox'

export const MAX_REDIRECT_SECONDS = 60

/** What an endpoint must be. */
export const ENDPOINT = '^https?://[^/?#@\\s]+(/[^?#@\\s]*)?$'
export const BUCKET = '^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$'
export const REGION = '^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$'
/** Keys with other characters are encoded differently by different stores. */
export const PREFIX = '^([A-Za-z0-9_-][A-Za-z0-9._-]*/)*([A-Za-z0-9_-][A-Za-z0-9._-]*)?$'
const KEY = '^[\\x21-\\x7e]+$'

/** The option `s3`: the bucket in which uploads are stored (contract 13.3). */
export const S3 = Type.Object({
  endpoint: Type.String({
    maxLength: 500, pattern: ENDPOINT, description: 'The address of the store, such as `https://s3.eu-central-1.amazonaws.com`',
  }),
  bucket: Type.String({ pattern: BUCKET, description: 'The bucket, which must exist' }),
  region: Type.String({ default: 'us-east-1', pattern: REGION, description: 'The region with which requests are signed' }),
  accessKeyId: Type.String({ maxLength: 200, pattern: KEY }),
  secretAccessKey: Type.String({ maxLength: 500, pattern: KEY }),
  prefix: Type.String({
    default: '', maxLength: 200, pattern: PREFIX, description: 'What the keys of all objects begin with, such as `usher`',
  }),
  pathStyle: Type.Boolean({
    default: true, description: 'Whether the bucket is in the path of addresses; otherwise it is in their host name',
  }),
  redirectSeconds: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: MAX_REDIRECT_SECONDS,
    description: 'For how long the address works to which a download is redirected; 0 serves downloads by the node',
  }),
}, { additionalProperties: false, description: 'The bucket of an S3 in which uploads are stored' })

export type S3Options = Readonly<Static<typeof S3>>

type Required = 'endpoint' | 'bucket' | 'accessKeyId' | 'secretAccessKey'
/** What a host gives. */
export type GivenS3 =
  Pick<S3Options, Required> & { [Name in Exclude<keyof S3Options, Required>]?: S3Options[Name] | undefined }

/** Returns the place of the objects whose keys begin with the prefix, for people. */
export const placeOfS3 = ({ bucket, prefix = '' }: Pick<GivenS3, 'bucket' | 'prefix'>): string =>
  `s3://${bucket}/${prefix === '' ? '' : `${prefix.replace(/\/$/, '')}/`}`
