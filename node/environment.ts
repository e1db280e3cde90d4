import { parseSettings, requireNode, type Settings } from './settings.ts'

/** The settings, from the environment and from `.env`. Throws an `Error` of one sentence. */
export function readEnvironment (): Settings {
  requireNode(process.versions.node)
  try {
    process.loadEnvFile()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw new Error('.env is there and cannot be read.', { cause: error })
  }
  return parseSettings(process.env)
}
