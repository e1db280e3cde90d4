import { Type, type Static } from '@sinclair/typebox'
import { labelOf } from '../fields/fields.ts'
import type { UserField } from '../users/user-fields.ts'
import { ProviderList } from './providers.ts'

/** What a form needs of a field: keywords of JSON schemas. */
const SHOWN = ['enum', 'format', 'maxLength', 'minimum', 'maximum'] as const

const Field = Type.Unsafe<Readonly<Record<string, unknown>>>({
  type: 'object',
  additionalProperties: true,
  description: 'A JSON schema with `type`, `title`, `description`, `default`, and what a form needs: `enum`, `format`, `maxLength`, `minimum`, `maximum`',
})

/** What a login and a sign-up consist of in this service, for those who build their own pages. */
export const SignInSettings = Type.Object({
  signUp: Type.Boolean({ description: 'Whether anybody may sign up' }),
  loginMail: Type.Boolean({ description: 'Whether a link and a code in a mail log users in' }),
  providers: ProviderList,
  fields: Type.Object({
    properties: Type.Unsafe<Readonly<Record<string, Readonly<Record<string, unknown>>>>>(
      Type.Record(Type.String(), Field)
    ),
  }, { description: 'The fields of the host that users may write themselves, in the order of its options' }),
}, { title: 'SignInSettings', description: 'What a login and a sign-up consist of in this service' })

export type SignInSettings = Static<typeof SignInSettings>

/** Returns the JSON schema of a field of the host, as far as a form needs it. */
export function describeField (field: UserField): Readonly<Record<string, unknown>> {
  const { type, input, description, default: preset, read, write } = field
  const limits = SHOWN.map((keyword) => [keyword, limitOf(input[keyword])] as const)
  const described = { title: labelOf(field), description, default: preset, 'x-read': read, 'x-write': write }
  const all = { type, ...described, ...Object.fromEntries(limits) }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

// In requests, null stands for no value, and no integer is beyond those that JavaScript can have.
function limitOf (value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((one) => one !== null)
  return Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER ? undefined : value
}
