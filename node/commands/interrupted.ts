let interrupted = false

/** Records that a signal ends the command. */
export const recordInterruption = (): void => { interrupted = true }

/** Returns whether a signal ends the command. Its failures are then not worth a message. */
export const isInterrupted = (): boolean => interrupted
