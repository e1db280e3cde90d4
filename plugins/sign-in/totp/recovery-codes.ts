import { createHash, randomBytes } from 'node:crypto'
import { foldCode } from '../../../schema/strings/code.ts'
import { toBase32 } from './codes.ts'

const CODES = 10
// 80 bits, so that a fast hash is enough, and nobody finds one by trying.
const BYTES = 10

/** Returns new recovery codes, in groups that are easy to copy by hand. */
export const createRecoveryCodes = (): string[] => Array.from({ length: CODES }, () =>
  toBase32(randomBytes(BYTES)).toLowerCase().replaceAll(/.{4}(?=.)/g, '$&-'))

/** Returns the hash of a recovery code, which is what the database stores, however the code is spelled. */
export const hashRecoveryCode = (code: string): Uint8Array =>
  createHash('sha256').update(foldCode(code).toUpperCase()).digest()
