// This module is loaded into the attacked node. It reports the memory in use after each full garbage collection.
import { constants, PerformanceObserver } from 'node:perf_hooks'

interface Collection { detail: { kind: number } }

const observer = new PerformanceObserver((list) => {
  const collections = list.getEntries() as unknown as Collection[]
  if (!collections.some(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR)) return
  const { heapUsed, external } = process.memoryUsage()
  process.send?.({ inUse: heapUsed + external })
})
observer.observe({ entryTypes: ['gc'] })
// The channel must not keep the node alive.
process.channel?.unref()
