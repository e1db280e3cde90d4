const POLL_MS = 1_000

/**
 * Stops a node that `npm start` has started when npm or its shell ends. npm passes signals on to its shell only, and
 * some shells, such as the one of Windows, end without passing them on to the node, which would continue to run without
 * a terminal.
 */
export function stopWithParent (environment: NodeJS.ProcessEnv = process.env, parent = process.ppid): void {
  if (environment['npm_lifecycle_event'] !== 'start') return
  const timer = setInterval(() => {
    if (process.ppid === parent && isAlive(parent)) return
    clearInterval(timer)
    // Sending the signal would end the process at once on Windows, which has no signals.
    process.emit('SIGTERM', 'SIGTERM')
  }, POLL_MS).unref()
}

function isAlive (pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
