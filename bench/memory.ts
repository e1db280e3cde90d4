// Loaded before a server that runs with --expose-gc: whatever message comes, its memory is the answer. The heap is that
// after a collection, so that it tells what is kept rather than what has not been collected yet; the resident memory
// is that before it, as the system sees it.
process.on('message', () => {
  const { rss } = process.memoryUsage()
  globalThis.gc!()
  process.send!({ ...process.memoryUsage(), rss })
})
// It is not what keeps the server alive.
process.channel!.unref()
