import { parseSettings, requireNode, type Settings } from './settings.ts'

/** Returns the settings from the environment and from `.env`. Throws an `Error` with a sentence if one is invalid. */
export function readEnvironment (): Settings {
  requireNode(process.versions.node)
  try {
    process.loadEnvFile()
  } catch (cause) {
    const isMissing = (cause as NodeJS.ErrnoException).code === 'ENOENT'
    if (!isMissing) throw new Error('.env exists and cannot be read: check its permissions.', { cause })
  }
  return parseSettings(process.env)
}
