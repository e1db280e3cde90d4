import { ConfigError, loadConfigFile, sourceOf, type ConfigFile } from '../config/config-file.ts'
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import type { Shell } from '../terminal/shell.ts'
import { actionsOfSetting, settingsOf } from './config-values.ts'
import { warnOfNames } from './names.ts'
import { findProviderSettings, warnOfProviderSettings } from './providers.ts'
import { checkSettings, settingNames, type CheckedSettings, type Place, type Settings } from './settings.ts'

/** Where the value of a setting comes from. Another word is the name of the configuration file. */
export type Source = 'environment' | '.env' | 'default' | (string & {})

/** The settings as they are given, valid or not. */
export interface GivenSettings extends CheckedSettings {
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
  const { settings, errors, warnings } = await checkEnvironment(shell)
  for (const warning of warnings) shell.messages.printWarning(warning)
  if (errors.length > 0) throw new Error(errors.join('\n'))
  return settings
}

/** Returns the settings as `readEnvironment`, with everything that is wrong with them. */
export async function checkEnvironment (shell: Shell): Promise<GivenSettings> {
  const { env } = shell
  const loaded = loadEnvironment(shell)
  const { file, mistakes } = await loadConfigFile(shell, settingNames)
    .then((file) => ({ file, mistakes: [] as string[] }), rejectOthers)
  const { settings, errors, rejected } = checkSettings(env, file, placeOf(shell))
  const ofFile = file ? namesIn(file) : []
  const sourceIn = (name: string): Source =>
    env[name] ? loaded.has(name) ? '.env' : 'environment' : ofFile.includes(name) ? sourceOf(file!) : 'default'
  return {
    settings,
    rejected,
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

// The variables of `.env` by the environment that they were added to, because a node reads its settings several times.
const loadedInto = new WeakMap<object, ReadonlySet<string>>()

// Adds the variables of `.env` to the environment, also for a configuration file, and returns their names.
function loadEnvironment (shell: Shell): ReadonlySet<string> {
  const { env } = shell
  const before = loadedInto.get(env)
  if (before) return before
  const variables = Object.entries(parseEnv(readFile(shell.resolve('.env'))))
    // An empty variable counts as absent: `X: ${X}` of docker compose makes one of each that is not set.
    .filter(([name]) => !env[name])
  Object.assign(env, Object.fromEntries(variables))
  const loaded = new Set(variables.map(([name]) => name))
  loadedInto.set(env, loaded)
  return loaded
}

// Returns the text of the file, or an empty one if there is none.
function readFile (path: string): string {
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw new Error('.env exists and cannot be read: check its permissions.', { cause })
  }
  try {
    // It also removes a byte order mark.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    // UTF-16 without a mark is valid UTF-8, with every other character a NUL.
    if (text.includes('\0')) throw new Error('The file has a NUL character.')
    return text
  } catch (cause) {
    throw new Error('.env is not in UTF-8: save it again with that encoding.', { cause })
  }
}
