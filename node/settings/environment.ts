import { ConfigError, loadConfigFile, sourceOf, type ConfigFile } from '../config/config-file.ts'
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import type { Shell } from '../terminal/shell.ts'
import { actionsOfSetting, settingsOf } from './config-values.ts'
import { warnOfNames } from './names.ts'
import { findProviderSettings, warnOfProviderSettings } from './providers.ts'
import { checkSettings, parseSettings, settingNames, type Place, type Settings } from './settings.ts'

/** Where the value of a setting comes from. Another word is the name of the configuration file. */
export type Source = 'environment' | '.env' | 'default' | (string & {})

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
 * Returns the settings from the environment, from `.env` and from the configuration file, in this order. Prints a
 * warning for each name that is close to that of a setting. Throws an `Error` with a sentence for each invalid setting,
 * or for each mistake in the file.
 */
export async function readEnvironment (shell: Shell): Promise<Settings> {
  loadEnvironment(shell)
  for (const warning of listWarnings(shell)) shell.messages.printWarning(warning)
  return parseSettings(shell.env, await loadConfigFile(shell, settingNames), placeOf(shell))
}

/** Returns the settings as `readEnvironment`, with everything that is wrong with them. */
export async function checkEnvironment (shell: Shell): Promise<GivenSettings> {
  const { env } = shell
  const inherited = new Set(listNames(shell).filter((name) => env[name]))
  loadEnvironment(shell)
  const { file, mistakes } = await loadConfigFile(shell, settingNames)
    .then((file) => ({ file, mistakes: [] as string[] }), rejectOthers)
  const { settings, errors } = checkSettings(env, file, placeOf(shell))
  const ofFile = file ? namesIn(file) : []
  const sourceIn = (name: string): Source =>
    inherited.has(name) ? 'environment' : env[name] ? '.env' : ofFile.includes(name) ? sourceOf(file!) : 'default'
  return {
    settings,
    // What is wrong with settings together may be different with the file.
    errors: mistakes.length > 0 ? [...mistakes, ...errors.filter((error) => error.includes(' must be '))] : errors,
    warnings: listWarnings(shell),
    sources: Object.fromEntries(listNames(shell).map((name) => [name, sourceIn(name)])),
  }
}

function rejectOthers (error: unknown): { file: undefined, mistakes: string[] } {
  if (error instanceof ConfigError) return { file: undefined, mistakes: error.message.split('\n') }
  throw error
}

// Returns the settings of which a configuration file has the value, or the rule.
function namesIn ({ options }: ConfigFile): string[] {
  const rules = Object.entries(actionsOfSetting)
    .flatMap(([name, actions]) => actions.some((action) => options.policy?.[action]) ? [name] : [])
  return [...Object.keys(settingsOf(options)), ...rules]
}

const placeOf = ({ cwd, messages: { isOnTerminal } }: Shell): Place => ({ cwd, isOnTerminal })

const listNames = ({ env }: Shell): string[] => [...settingNames, ...Object.keys(findProviderSettings(env))]

const listWarnings = ({ env }: Shell): string[] => [...warnOfNames(env, settingNames), ...warnOfProviderSettings(env)]

// Also for a configuration file, which reads the environment of the process.
function loadEnvironment (shell: Shell): void {
  try {
    const variables = parseEnv(readFileSync(shell.resolve('.env'), 'utf8'))
    for (const [name, value] of Object.entries(variables)) if (!(name in shell.env)) shell.env[name] = value
  } catch (cause) {
    const isMissing = (cause as NodeJS.ErrnoException).code === 'ENOENT'
    if (!isMissing) throw new Error('.env exists and cannot be read: check its permissions.', { cause })
  }
}
