import { findProviderSettings, providersOf } from '../settings/providers.ts'
import { areSimilar, optionNames } from '../../schema/options/option-names.ts'
import type { UsherConfig } from '../../schema/options/config.ts'
import type { UsherOptions } from '../../schema/options/options.ts'
import { readOptions } from '../../schema/options/read-options.ts'

// What a node does in place of each of these options.
const ofNode: Readonly<Record<string, string>> = {
  prefix: 'a node serves at the root: set PUBLIC_URL if a proxy adds a path',
  sql: 'a node opens its own connections: set databaseUrl',
  logLevel: 'set LOG_LEVEL',
  logSerializers: 'a node has a log of its own',
  onFirstAdmin: 'a node prints the first admin',
  onNoAdmin: 'a node prints that there is no admin',
  onAdminIgnored: 'a node prints that ADMIN_EMAIL has no effect',
  onRoleInUse: 'a node does not start then',
  shownSettings: 'the console of a node shows its settings',
}

const names = [...optionNames.filter((name) => !Object.hasOwn(ofNode, name)), 'routes']
// What options need that others give, because each is checked by itself. What they need of each other, the node checks.
const whole = {
  databaseUrl: 'postgres://localhost/usher', publicUrl: 'https://usher.invalid', secret: 'that of the node', mailer: () => {},
}

/**
 * Returns what is wrong with the options of a configuration file, also with those that the plugin would ignore: a
 * sentence without its full stop for each mistake, which names the option.
 */
export function checkConfig (
  config: UsherConfig, { env, settingNames }: { env: NodeJS.ProcessEnv, settingNames: readonly string[] }
): string[] {
  return Object.entries(config).filter(([, value]) => value !== undefined).flatMap(([name, value]) => {
    if (!names.includes(name)) return [explainUnknown(name, settingNames)]
    // The environment may have the secret of a provider.
    const complete = name === 'providers'
      ? providersOf({ PROVIDERS: findProviderSettings(env), file: { options: config } })
      : value
    // The actions of the host are those of its policy.
    if (name === 'roles' || name === 'organizations') return checkOption(name, complete, { policy: config.policy })
    if (name !== 'routes') return checkOption(name, complete)
    return typeof value === 'function' ? [] : ['routes must be a function']
  })
}

function explainUnknown (name: string, settingNames: readonly string[]): string {
  const advice = ofNode[name]
  if (advice !== undefined) return `${name} is no option of a node, because ${advice}`
  const setting = name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()
  if (settingNames.includes(setting)) return `there is no option ${name}: set ${setting} in the environment`
  const similar = names.find((known) => areSimilar(known, name))
  return `there is no option ${name}${similar === undefined ? '' : `: did you mean ${similar}?`}`
}

function checkOption (name: string, value: unknown, others: object = {}): string[] {
  try {
    readOptions({ ...whole, ...others, [name]: value } as UsherOptions)
    return []
  } catch (error) {
    const message = (error as Error).message.replace(/^usher: /, '')
    return message.split(new RegExp(`; (?=${name}\\b)`))
  }
}
