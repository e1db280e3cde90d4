import { totalmem } from 'node:os'
import { MAX_CONCURRENT_HASHES, RECOMMENDED } from '../../schema/options/password-hash.ts'
import type { Settings } from '../settings/settings.ts'
import { workersOf } from '../workers/count.ts'

const MIB = 1024 * 1024

/**
 * Returns a sentence if hashing passwords at the cost of the settings can take more than half of the memory, or
 * undefined. A node that is out of memory is killed by a few logins at once. The recommended cost is never refused.
 * @param memory the bytes that the machine or its control group has
 */
export function explainPasswordMemory (settings: Settings, memory = availableMemory()): string | undefined {
  const { PASSWORD_HASH_MEMORY_KIB: kib } = settings
  if (kib <= RECOMMENDED.memoryKiB) return undefined
  const processes = workersOf(settings)
  const hashes = processes * MAX_CONCURRENT_HASHES
  const max = Math.floor(memory / 2 / hashes / 1024)
  if (kib <= max) return undefined
  return `PASSWORD_HASH_MEMORY_KIB ${kib} takes ${Math.round(kib * hashes / 1024)} MiB for ${hashes} hashes at once, ` +
    `more than half of the ${Math.floor(memory / MIB)} MiB of memory: set at most ${Math.max(max, RECOMMENDED.memoryKiB)}.`
}

// A control group without a limit has a very large one.
function availableMemory (): number {
  return Math.min(totalmem(), process.constrainedMemory() || Infinity)
}
