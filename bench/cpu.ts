// Loaded before a server: whatever message comes, the processor time that it has taken so far is the answer.
process.on('message', () => { process.send!(process.cpuUsage()) })
// It is not what keeps the server alive.
process.channel!.unref()
