// This module is loaded into every process of a node, by NODE_OPTIONS. Each writes its memory to a file of its own,
// every ten seconds. As in memory.ts, the heap is measured after a garbage collection, and the resident memory before.
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'

const EVERY_MS = 10_000
const folder = process.env['MEMORY_DIR']

if (isMainThread && folder !== undefined) {
  // NODE_OPTIONS cannot have --expose-gc in all supported versions.
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const file = join(folder, `${process.pid}.json`)
  setInterval(() => {
    const { rss } = process.memoryUsage()
    collect()
    const { heapUsed, external, arrayBuffers } = process.memoryUsage()
    // A reader sees the former file or the new one.
    writeFileSync(`${file}.new`, JSON.stringify({ rss, heapUsed, external, arrayBuffers }))
    renameSync(`${file}.new`, file)
  }, EVERY_MS).unref()
}
