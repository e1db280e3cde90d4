import { isDeepStrictEqual } from 'node:util'
import type { TSchema } from '@sinclair/typebox'
import type { SettingGroup, ShownSetting } from '../../schema/admin/admin.ts'
import { Settings, type Options } from '../../schema/options/options.ts'
import { storeNames } from '../../schema/options/stores.ts'

// Texts may be secret, or addresses with a password. These are not.
const SHOWN_TEXTS = new Set([
  'issuer', 'publicUrl', 'passwordUrl', 'pages.productName', 'pages.color', 'pages.logo', 'pages.appUrl', 'pages.termsUrl',
  'pages.privacyUrl', 'pages.language', 's3.bucket', 's3.region',
])

const groups: readonly (readonly [pattern: RegExp, group: SettingGroup])[] = [
  [/^(throttle|live|graphql)\b/, 'limits'],
  [/^(pages|console|passwordUrl)\b/, 'pages'],
  [/^(upload|unfinished|posts)/, 'uploads'],
  [/^(session|accessToken|stepUp|secondFactor|signing|issuer|password|signUp|loginMail|audit)/, 'sessions'],
  [/^(pool|slowStatement|deadlines)/, 'database'],
]

function groupOf (name: string): SettingGroup {
  if (storeNames.some((store) => name.startsWith(`${store}.`))) return 'uploads'
  return groups.find(([pattern]) => pattern.test(name))?.[1] ?? 'node'
}

/**
 * Returns the options with which a host has mounted the plugin, with those of groups such as `throttle.account.burst`.
 * Only numbers, choices and a few texts are shown, because others may be secret.
 */
export function showOptions (options: Options): ShownSetting[] {
  return Object.entries(Settings.properties)
    .flatMap(([name, schema]) => showOption(name, schema, Reflect.get(options, name)))
}

function showOption (name: string, schema: TSchema, value: unknown): ShownSetting[] {
  const { type, properties, default: usual } =
    schema as { type?: unknown, properties?: Record<string, TSchema>, default?: unknown }
  if (type === 'object' && properties) {
    if (typeof value !== 'object' || value === null) return []
    return Object.entries(properties).flatMap(([member, schema]) =>
      showOption(`${name}.${member}`, schema, Reflect.get(value, member)))
  }
  const isShown = typeof value === 'number' || typeof value === 'boolean' ||
    (typeof value === 'string' && ('enum' in schema || SHOWN_TEXTS.has(name)))
  if (!isShown) return []
  return [{
    name, value: String(value), source: isDeepStrictEqual(value, usual) ? 'default' : 'host', group: groupOf(name),
  }]
}
