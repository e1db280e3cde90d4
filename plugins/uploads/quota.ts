import type { Core } from '../core.ts'
import { batchCalls } from '../../db/batching/batching.ts'
import { findUploadUsage, type UploadUsage } from '../../db/uploads/usage.ts'
import { PayloadTooLarge } from '../../schema/http/errors.ts'
import { QuotaExceeded } from '../../schema/uploads/upload.ts'

/** How many bytes a file may have, and the error beyond that. */
export interface SizeLimit {
  maxBytes: number
  tooLarge: () => Error
}

/**
 * Creates the quotas of uploads (contract 13.4). They apply to everyone, including admins. The statement that writes
 * the record of an upload enforces them. What is checked here ends an upload early, and says how much space there is.
 */
export function createQuota ({ database: { db }, options }: Core) {
  const { uploadQuotaBytes, uploadQuotaFiles, uploadMaxBytes, deadlines } = options
  const read = batchCalls((userIds: string[]) => findUploadUsage(db, userIds), { timeoutMs: deadlines.batch })

  /** The limit of a file, apart from quotas. */
  const usual: SizeLimit = { maxBytes: uploadMaxBytes, tooLarge: () => new PayloadTooLarge() }

  return {
    usual,

    /** What the statement enforces. */
    ofStatement: { bytes: uploadQuotaBytes, files: uploadQuotaFiles },

    /** Returns what the uploads of a user take. */
    usageOf: (userId: string): Promise<UploadUsage> => read(userId),

    /** Returns how many bytes the next file of a user may have. Throws `QuotaExceeded` if there may be none. */
    async limitOf (userId: string): Promise<SizeLimit> {
      if (uploadQuotaBytes === 0 && uploadQuotaFiles === 0) return usual
      const { bytes, files } = await read(userId)
      if (uploadQuotaFiles > 0 && files >= uploadQuotaFiles) throw new QuotaExceeded()
      // An empty file needs no space.
      const left = uploadQuotaBytes > 0 ? Math.max(0, uploadQuotaBytes - bytes) : Infinity
      return left < uploadMaxBytes ? { maxBytes: left, tooLarge: () => new QuotaExceeded() } : usual
    },
  }
}
