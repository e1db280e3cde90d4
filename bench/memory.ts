// This module is loaded into a server that runs with --expose-gc. It responds to any message with the memory usage. The
// heap is measured after a garbage collection, so that it contains only what is retained. The resident memory is
// measured before it, as the system sees it.
process.on('message', () => {
  const { rss } = process.memoryUsage()
  globalThis.gc!()
  process.send!({ ...process.memoryUsage(), rss })
})
// The channel must not keep the server alive.
process.channel!.unref()
