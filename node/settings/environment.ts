import { printWarning } from '../terminal/print.ts'
import { warnOfNames } from './names.ts'
import { findProviderSettings, warnOfProviderSettings } from './providers.ts'
import { checkSettings, parseSettings, settingNames, type Settings } from './settings.ts'

/** Where the value of a setting comes from. */
export type Source = 'environment' | '.env' | 'default'

/** The settings as they are given, valid or not. */
export interface GivenSettings {
  readonly settings: Settings
  /** A sentence for each invalid setting. */
  readonly errors: string[]
  /** A sentence for each variable that is probably a misspelled setting. */
  readonly warnings: string[]
  readonly sources: Readonly<Record<string, Source>>
}

/**
 * Returns the settings from the environment and from `.env`. Prints a warning for each name that is close to that of a
 * setting. Throws an `Error` with a sentence for each invalid setting.
 */
export function readEnvironment (): Settings {
  loadEnvironment()
  for (const warning of listWarnings()) printWarning(warning)
  return parseSettings(process.env)
}

/** Returns the settings from the environment and from `.env` with everything that is wrong with them. */
export function checkEnvironment (): GivenSettings {
  const inherited = new Set(listNames().filter((name) => process.env[name]))
  loadEnvironment()
  const sources =
    listNames().map((name) => [name, inherited.has(name) ? 'environment' : process.env[name] ? '.env' : 'default'])
  return {
    ...checkSettings(process.env),
    warnings: listWarnings(),
    sources: Object.fromEntries(sources),
  }
}

const listNames = (): string[] => [...settingNames, ...Object.keys(findProviderSettings(process.env))]

const listWarnings = (): string[] =>
  [...warnOfNames(process.env, settingNames), ...warnOfProviderSettings(process.env)]

function loadEnvironment (): void {
  try {
    process.loadEnvFile()
  } catch (cause) {
    const isMissing = (cause as NodeJS.ErrnoException).code === 'ENOENT'
    if (!isMissing) throw new Error('.env exists and cannot be read: check its permissions.', { cause })
  }
}
