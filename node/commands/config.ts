import { checkEnvironment } from '../settings/environment.ts'
import { maskSetting } from '../settings/masked.ts'
import { settingNames } from '../settings/settings.ts'
import type { Command } from './command.ts'
import { formatTable } from './table.ts'

export default {
  summary: 'Show every setting, and where its value comes from.',
  details: 'Secrets, credentials in URLs and invalid URLs are not shown. The exit code is 1 if a setting is invalid.',
  json: '{ settings: [{ name, value or null, source: environment, .env or default }], errors: [sentence], warnings: [sentence] }',
  options: {},

  async run () {
    const { settings: values, sources, errors, warnings } = checkEnvironment()
    const { PROVIDERS: providers = {} } = values
    const all = new Map([
      ...settingNames.map((name) => [name, values[name as keyof typeof values]] as const), ...Object.entries(providers),
    ])
    const settings = [...all].map(([name, value]) => ({
      name,
      value: maskSetting(name, value) ?? null,
      source: sources[name],
    }))
    const cells = settings.map(({ name, value, source }) => [name, show(value), source])
    const text = [formatTable(['SETTING', 'VALUE', 'SOURCE'], cells), errors.join('\n'), warnings.join('\n')]
      .filter(Boolean).join('\n\n')
    return { text, json: { settings, errors, warnings }, isFailure: errors.length > 0 }
  },
} satisfies Command

// Returns what the setting accepts. Texts cannot be taken for a setting without a value, because of the parentheses.
function show (value: unknown): string {
  const text = Array.isArray(value) ? value.join(', ') : String(value ?? '')
  return text || '(not set)'
}
