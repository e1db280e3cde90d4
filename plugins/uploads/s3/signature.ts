import { createHash, createHmac } from 'node:crypto'

/** With what requests to a store are signed. */
export interface Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
}

/** The parts of a request that are signed. */
export interface SignedParts {
  readonly method: string
  /** The host, with the port unless it is the usual one. */
  readonly host: string
  /** The path, percent-encoded. */
  readonly path: string
  readonly query: Readonly<Record<string, string>>
}

/** The SHA-256 of no bytes, hexadecimal. */
export const EMPTY_SHA256 = createHash('sha256').digest('hex')

const ALGORITHM = 'AWS4-HMAC-SHA256'

/**
 * Returns the headers that authenticate a request by AWS Signature Version 4, with the SHA-256 of its body, which the
 * store compares with what it receives. The headers that are given are signed, too. Their names are in small letters.
 */
export function signRequest (
  parts: SignedParts, given: Readonly<Record<string, string>>, sha256: string, credentials: Credentials, now: Date
): Record<string, string> {
  const time = timeOf(now)
  const headers = { ...given, host: parts.host, 'x-amz-content-sha256': sha256, 'x-amz-date': time }
  const { names, signature } = sign(parts, headers, sha256, credentials, time)
  const { accessKeyId, region } = credentials
  return {
    ...headers,
    authorization: `${ALGORITHM} Credential=${accessKeyId}/${scopeOf(time, region)}, SignedHeaders=${names}, ` +
      `Signature=${signature}`,
  }
}

/** Returns the query with which a GET works without headers for some seconds, whoever sends it. */
export function presign (
  parts: SignedParts, seconds: number, credentials: Credentials, now: Date
): Record<string, string> {
  const time = timeOf(now)
  const query = {
    ...parts.query,
    'X-Amz-Algorithm': ALGORITHM,
    'X-Amz-Credential': `${credentials.accessKeyId}/${scopeOf(time, credentials.region)}`,
    'X-Amz-Date': time,
    'X-Amz-Expires': String(seconds),
    'X-Amz-SignedHeaders': 'host',
  }
  const { signature } = sign({ ...parts, query }, { host: parts.host }, 'UNSIGNED-PAYLOAD', credentials, time)
  return { ...query, 'X-Amz-Signature': signature }
}

/** Returns a query as it is signed and sent: percent-encoded by RFC 3986, in the order of its names. */
export function queryOf (query: Readonly<Record<string, string>>): string {
  return Object.entries(query).map(([name, value]) => [encode(name), encode(value)] as const)
    .sort(([one], [other]) => one < other ? -1 : 1)
    .map((pair) => pair.join('=')).join('&')
}

/** Returns a path as it is signed and sent. */
export const pathOf = (path: string): string => path.split('/').map(encode).join('/')

// https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html
function sign (
  { method, path, query }: SignedParts, headers: Readonly<Record<string, string>>, sha256: string,
  { secretAccessKey, region }: Credentials, time: string
): { names: string, signature: string } {
  const sorted = Object.entries(headers).sort(([one], [other]) => one < other ? -1 : 1)
  const names = sorted.map(([name]) => name).join(';')
  const lines = sorted.map(([name, value]) => `${name}:${value.trim().replace(/\s+/g, ' ')}\n`).join('')
  const canonical = [method, path, queryOf(query), lines, names, sha256].join('\n')
  const text = [ALGORITHM, time, scopeOf(time, region), createHash('sha256').update(canonical).digest('hex')].join('\n')
  let key: string | Buffer = `AWS4${secretAccessKey}`
  for (const part of [time.slice(0, 8), region, 's3', 'aws4_request']) key = hmac(key, part)
  return { names, signature: hmac(key, text).toString('hex') }
}

const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
const scopeOf = (time: string, region: string): string => `${time.slice(0, 8)}/${region}/s3/aws4_request`
const timeOf = (now: Date): string => now.toISOString().replace(/[:-]|\.\d{3}/g, '')

const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
