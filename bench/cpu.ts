// This module is loaded into a server. It responds to any message with the CPU time that the server has used so far.
process.on('message', () => { process.send!(process.cpuUsage()) })
// The channel must not keep the server alive.
process.channel!.unref()
