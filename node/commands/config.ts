import { listSettings, textOf } from '../settings/listed.ts'
import type { Command } from './command.ts'
import { formatTable } from './table.ts'

export default {
  details: 'Secrets, credentials in URLs and invalid URLs are not shown. The exit code is 1 if a setting or the configuration file is\n' +
    'wrong. Options are those of usher.config.ts that no setting has: of functions and objects, only the names are shown.',
  json: '{ settings: [{ name, value or null, source: environment, .env, the name of the file or default }], options: [{ name, value, ' +
    'source }], errors: [sentence], warnings: [sentence] }',
  options: {},

  async run (_, __, shell) {
    const { settings, options, errors, warnings } = await listSettings(shell)
    const cells = [...settings, ...options].map(({ name, value, source }) => [name, show(value), source] as const)
    const text = [formatTable(['SETTING', 'VALUE', 'SOURCE'], cells), errors.join('\n'), warnings.join('\n')]
      .filter(Boolean).join('\n\n')
    const json = {
      settings: settings.map(({ name, value = null, source }) => ({ name, value, source })),
      options: options.map(({ name, value, source }) => ({ name, value: show(value), source })),
      errors,
      warnings,
    }
    return { text, json, isFailure: errors.length > 0 }
  },
} satisfies Command

// Returns what the setting accepts. Texts cannot be taken for a setting without a value, because of the parentheses.
const show = (value: unknown): string => textOf(value) || '(not set)'
