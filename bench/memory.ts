// Loaded before a server that runs with --expose-gc: whatever message comes, its memory is the answer, after a
// collection, so that it tells what is kept rather than what has not been collected yet.
process.on('message', () => {
  globalThis.gc!()
  process.send!(process.memoryUsage())
})
// It is not what keeps the server alive.
process.channel!.unref()
