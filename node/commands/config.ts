import { sourceOf, type ConfigFile } from '../config/config-file.ts'
import { optionOfSetting, settingOf } from '../settings/config-values.ts'
import { checkEnvironment } from '../settings/environment.ts'
import { isRule, RULE } from '../settings/listed.ts'
import { maskSetting } from '../settings/masked.ts'
import { settingNames } from '../settings/settings.ts'
import type { Shell } from '../terminal/shell.ts'
import type { Command } from './command.ts'
import { formatTable } from './table.ts'

export default {
  details: 'Secrets, credentials in URLs and invalid URLs are not shown. The exit code is 1 if a setting or the configuration file is\n' +
    'wrong. Options are those of usher.config.ts that no setting has: of functions and objects, only the names are shown.',
  json: '{ settings: [{ name, value or null, source: environment, .env, the name of the file or default }], options: [{ name, value, ' +
    'source }], errors: [sentence], warnings: [sentence] }',
  options: {},

  async run (_, __, shell) {
    const { settings: values, sources, errors, warnings } = await checkEnvironment(shell)
    const { PROVIDERS: providers = {} } = values
    const all = new Map([
      ...settingNames.map((name) => [name, values[name as keyof typeof values]] as const), ...Object.entries(providers),
    ])
    const settings = [...all].map(([name, value]) => ({
      name,
      value: isRule(name, values.file, sources[name]) ? RULE : maskSetting(name, value) ?? null,
      source: sources[name],
    }))
    const options = values.file ? listOptions(values.file, shell) : []
    const cells = [...settings.map(({ name, value, source }) => [name, show(value), source] as const), ...options
      .map(({ name, value, source }) => [name, value, source] as const)]
    const text = [formatTable(['SETTING', 'VALUE', 'SOURCE'], cells), errors.join('\n'), warnings.join('\n')]
      .filter(Boolean).join('\n\n')
    return { text, json: { settings, options, errors, warnings }, isFailure: errors.length > 0 }
  },
} satisfies Command

// Returns the options of the file that no setting has, as they may be shown.
function listOptions (file: ConfigFile, { env }: Pick<Shell, 'env'>): { name: string, value: string, source: string }[] {
  const source = sourceOf(file)
  return Object.entries(file.options).flatMap(([name, value]) => listValues(name, value, env))
    .map(({ name, value }) => ({ name, value, source }))
}

// Of an object that has settings, its other members are options of their own.
function listValues (path: string, value: unknown, env: NodeJS.ProcessEnv): { name: string, value: string }[] {
  // A setting of a provider replaces the member, and is listed above.
  const isReplaced = path.startsWith('providers.') && env[settingNameOf(path).replace('PROVIDERS', 'PROVIDER')]
  if (value === undefined || isReplaced || settingOf(path) !== undefined) return []
  const isGroup = /^providers(\.[^.]+)?$/.test(path) ||
    Object.values(optionOfSetting).some((option) => option.startsWith(`${path}.`))
  if (isGroup) return Object.entries(Object(value)).flatMap(([name, member]) => listValues(`${path}.${name}`, member, env))
  return [{ name: path, value: describe(path, value) }]
}

function describe (path: string, value: unknown): string {
  if (typeof value === 'function') return '(function)'
  if (Array.isArray(value)) return `(${value.length} item${value.length === 1 ? '' : 's'})`
  if (typeof value !== 'object' || value === null) return show(maskSetting(settingNameOf(path), value))
  const { type, properties } = value as { type?: unknown, properties?: object }
  // Fields of users are a schema.
  return `(${Object.keys(type === 'object' && properties ? properties : value).join(', ')})`
}

// Secrets are recognised by the names of settings.
const settingNameOf = (path: string) =>
  path.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).replaceAll(/[.-]/g, '_').toUpperCase()

// Returns what the setting accepts. Texts cannot be taken for a setting without a value, because of the parentheses.
function show (value: unknown): string {
  const text = Array.isArray(value) ? value.join(', ') : String(value ?? '')
  return text || '(not set)'
}
