import type { ShownSetting } from '../../schema/admin/admin.ts'
import { sourceOf, type ConfigFile } from '../config/config-file.ts'
import { actionsOfSetting, settingOf } from './config-values.ts'
import { checkEnvironment } from './environment.ts'
import { maskSetting } from './masked.ts'
import { groupOfSetting, optionOfSetting } from './schema.ts'
import { settingNames } from './settings.ts'
import type { Shell } from '../terminal/shell.ts'

/** A setting, or an option of the configuration file, without secrets. */
export interface Listed {
  readonly name: string
  /** Undefined if it is not set. */
  readonly value: unknown
  /** `environment`, `.env`, the name of the file or `default`. */
  readonly source: string
}

/** What applies to the node, as it may be shown. */
export interface ListedSettings {
  readonly settings: readonly Listed[]
  /** The options of the configuration file that no setting has. */
  readonly options: readonly Listed[]
  /** A sentence for each problem. */
  readonly errors: readonly string[]
  readonly warnings: readonly string[]
}

// What is shown in place of a rule.
const RULE = '(rule of the file)'

/** Returns every setting and every option of the configuration file as they may be shown, without secrets. */
export async function listSettings (shell: Shell): Promise<ListedSettings> {
  const { settings: values, rejected, sources, errors, warnings } = await checkEnvironment(shell)
  const { PROVIDERS: providers = {}, file } = values
  const all = { ...values, ...rejected, ...providers }
  const settings = [...settingNames, ...Object.keys(providers)].map((name) => {
    const source = sources[name] ?? 'default'
    return { name, value: isRule(name, file, source) ? RULE : maskSetting(name, Reflect.get(all, name)), source }
  })
  return { settings, options: file ? listOptions(file, shell) : [], errors, warnings }
}

/** Returns them as the console shows them. */
export async function listShownSettings (shell: Shell): Promise<ShownSetting[]> {
  const { settings, options } = await listSettings(shell)
  return [...settings, ...options].map(({ name, value, source }) =>
    ({ name, value: textOf(value) || null, source, group: groupOfSetting(name) }))
}

/** Returns the text of a value, which is empty if it is not set. */
export function textOf (value: unknown): string {
  if (Array.isArray(value)) return value.join(', ')
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '')
}

// Returns whether a rule of the policy stands in place of one of the audiences that a setting names.
const isRule = (name: string, file: ConfigFile | undefined, source: string): boolean =>
  Object.hasOwn(actionsOfSetting, name) && file !== undefined && source === sourceOf(file)

function listOptions (file: ConfigFile, { env }: Pick<Shell, 'env'>): Listed[] {
  const source = sourceOf(file)
  return Object.entries(file.options).flatMap(([name, value]) => listValues(name, value, env))
    .map(({ name, value }) => ({ name, value, source }))
}

// Of an object that has settings, its other members are options of their own.
function listValues (path: string, value: unknown, env: NodeJS.ProcessEnv): { name: string, value: unknown }[] {
  // A setting of a provider replaces the member, and is listed above.
  const isReplaced = path.startsWith('providers.') && env[settingNameOf(path).replace('PROVIDERS', 'PROVIDER')]
  if (value === undefined || isReplaced || settingOf(path) !== undefined) return []
  const isGroup = /^providers(\.[^.]+)?$/.test(path) ||
    Object.values(optionOfSetting).some((option) => option.startsWith(`${path}.`))
  if (isGroup) return Object.entries(Object(value)).flatMap(([name, member]) => listValues(`${path}.${name}`, member, env))
  return [{ name: path, value: describe(path, value) }]
}

function describe (path: string, value: unknown): unknown {
  if (typeof value === 'function') return '(function)'
  if (Array.isArray(value)) return `(${value.length} item${value.length === 1 ? '' : 's'})`
  if (typeof value !== 'object' || value === null) return maskSetting(settingNameOf(path), value)
  const { type, properties } = value as { type?: unknown, properties?: object }
  // Fields of users are a schema.
  return `(${Object.keys(type === 'object' && properties ? properties : value).join(', ')})`
}

// Secrets are recognised by the names of settings.
const settingNameOf = (path: string) =>
  path.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).replaceAll(/[.-]/g, '_').toUpperCase()
