import type { S3Options } from '../../../schema/options/s3.ts'
import { InvalidAnswer, StoreError } from './requests.ts'

/** The store does not compare bytes with the hash that is signed with them. */
export class ChecksumsIgnored extends Error {}

const SKEW = new Set(['RequestTimeTooSkewed', 'RequestExpired'])
const TLS = /^(CERT_|ERR_TLS_|ERR_SSL_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|EPROTO)/

/**
 * Returns a sentence about why a bucket cannot be used, which begins with the option at fault and has no secrets.
 */
export function explainStore (error: unknown, { bucket, endpoint, region }: S3Options, now = Date.now()): string {
  const { host } = new URL(endpoint)
  if (error instanceof ChecksumsIgnored) {
    return `s3.endpoint ${host} cannot be used, because it stores bytes that differ from their signed checksum: use another store`
  }
  if (error instanceof InvalidAnswer) {
    return `s3.endpoint ${host} does not answer like an S3: check the address. ${error.message}`
  }
  if (!(error instanceof StoreError)) {
    const { code, message } = error as NodeJS.ErrnoException
    if (TLS.test(code ?? '')) return `s3.endpoint ${host} has no valid certificate (${code}): correct it, or the address`
    return `s3.endpoint ${host} cannot be reached (${code ?? message}): check the address and that the store runs`
  }
  const { code, status } = error
  if (code === 'NoSuchBucket') return `s3.bucket ${bucket} does not exist at ${host}: create it, or correct its name`
  if (code === 'InvalidAccessKeyId') return `s3.accessKeyId is not known at ${host}: correct it, or create a new key`
  if (code === 'SignatureDoesNotMatch') {
    return `s3.secretAccessKey is not the secret of s3.accessKeyId at ${host}: correct it`
  }
  if (['ExpiredToken', 'InvalidToken', 'TokenRefreshRequired'].includes(code)) {
    return `s3.accessKeyId has expired at ${host}: create a new key that does not expire`
  }
  if (SKEW.has(code)) {
    const seconds = error.time === undefined ? undefined : Math.round((now - error.time) / 1000)
    const skew = seconds === undefined ? '' : `, ${Math.abs(seconds)} seconds ${seconds < 0 ? 'behind' : 'ahead'}`
    return `s3.endpoint ${host} rejects the clock of this machine${skew}: set the clock`
  }
  if (code === 'AuthorizationHeaderMalformed' || code === 'PermanentRedirect' || [301, 307].includes(status)) {
    const right = error.region ? `use ${error.region}` : 'use the one of the bucket, and its s3.endpoint'
    return `s3.region ${region} is not the region of the bucket ${bucket} (${code}): ${right}`
  }
  if (status === 403) {
    return `s3.accessKeyId may not use the bucket ${bucket} (${code}): allow it to get, put, delete and list objects, ` +
      'and to list and abort uploads of several parts'
  }
  return `s3.endpoint ${host} cannot be used (${status} ${code}): check the address and the state of the store`
}
