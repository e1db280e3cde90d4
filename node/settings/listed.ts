import type { ShownSetting } from '../../schema/admin/admin.ts'
import { sourceOf, type ConfigFile } from '../config/config-file.ts'
import { actionsOfSetting } from './config-values.ts'
import { checkEnvironment } from './environment.ts'
import { maskSetting } from './masked.ts'
import { settingNames } from './settings.ts'
import type { Shell } from '../terminal/shell.ts'

/** What is shown in place of a rule. */
export const RULE = '(rule of the file)'

/** Returns whether a rule of the policy stands in place of one of the audiences that a setting names. */
export const isRule = (name: string, file: ConfigFile | undefined, source?: string): boolean =>
  Object.hasOwn(actionsOfSetting, name) && file !== undefined && source === sourceOf(file)

/** Returns every setting as it may be shown, without secrets. */
export async function listSettings (shell: Shell): Promise<ShownSetting[]> {
  const { settings: values, sources } = await checkEnvironment(shell)
  const { PROVIDERS: providers = {} } = values
  const all = new Map([
    ...settingNames.map((name) => [name, values[name as keyof typeof values]] as const), ...Object.entries(providers),
  ])
  return [...all].map(([name, value]) => {
    const source = sources[name] ?? 'default'
    const shown = isRule(name, values.file, source) ? RULE : maskSetting(name, value)
    const text = Array.isArray(shown) ? shown.join(', ') : String(shown ?? '')
    return { name, value: text === '' ? null : text, source }
  })
}
