let isLoaded = false

/** Records that this process has run a configuration file. */
export const recordLoadedConfig = (): void => { isLoaded = true }

/** Returns whether this process has run a configuration file. */
export const hasLoadedConfig = (): boolean => isLoaded
