import type { UsherConfig } from '../../schema/options/config.ts'
import { storeNames } from '../../schema/options/stores.ts'
import { optionOfSetting } from './schema.ts'

/** The settings that say who may read something, with the actions of the policy that they decide. */
export const actionsOfSetting = {
  USERS_VISIBLE_TO: ['users:list', 'users:read'],
  EMAILS_VISIBLE_TO: ['users:read-email'],
  POSTS_VISIBLE_TO: ['posts:read'],
  UPLOADS_VISIBLE_TO: ['uploads:read'],
} as const

/**
 * Returns the values that a configuration file has for settings, by their names. Those of the environment take
 * precedence (contract 14.6).
 */
export function settingsOf (config: UsherConfig): Record<string, unknown> {
  return Object.fromEntries(Object.entries(optionOfSetting).flatMap(([name, path]) => {
    const value = path.split('.').reduce<unknown>((parent, key) => Reflect.get(Object(parent), key), config)
    return value === undefined ? [] : [[name, value]]
  }))
}

/** Returns the setting whose option has a place in the options, or undefined. */
export const settingOf = (path: string): string | undefined =>
  Object.entries(optionOfSetting).find(([, option]) => option === path)?.[0]

// Options that nodes get in another way, see node/run.ts. Commands do not get them: a mailer could send mails again.
const ofNode = ['routes', 'mailer', 'mailTemplates', 'webhooks', 'emitter', 'uploadsDir', 'providers', 'policy'] as const

/**
 * Returns the options of a configuration file that no setting sets and that concern nodes and commands alike, such as
 * the fields of users. Of groups such as `throttle`, other members than those of settings are included.
 */
export function ownOptions (config: UsherConfig) {
  const names = new Set([...ofNode, ...Object.values(optionOfSetting).filter((path) => !path.includes('.')), 'admin', ...storeNames])
  return Object.fromEntries(Object.entries(config).filter(([name]) => !names.has(name))) as
    Omit<UsherConfig, typeof ofNode[number]>
}

/** Returns a configuration whose policy has no rule for what settings decide that are given. */
export function withoutDecided (config: UsherConfig, given: readonly string[]): UsherConfig {
  const decided = Object.entries(actionsOfSetting)
    .flatMap(([setting, actions]) => given.includes(setting) ? [...actions] as string[] : [])
  if (!config.policy || decided.length === 0) return config
  const rules = Object.entries(config.policy).filter(([action]) => !decided.includes(action))
  return { ...config, policy: Object.fromEntries(rules) }
}
