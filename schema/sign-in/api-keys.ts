import { Type, type Static } from '@sinclair/typebox'
import { defineError } from '../http/errors.ts'
import { Id, Instant, line, nullable, optionalInstant } from '../strings/text.ts'

export const ApiKeyNotFound = defineError('API_KEY_NOT_FOUND', 'API key not found', 404)
export const TooManyApiKeys = defineError('TOO_MANY_API_KEYS', 'A user may have 50 API keys: delete one first', 409)
export const NotAServiceUser = defineError(
  'NOT_A_SERVICE_USER', 'A key of another person would act in the name of that person: create one for a service user',
  409
)
/** An API key was used where only the session of a user suffices (contract 17.1). */
export const SessionRequired = defineError(
  'SESSION_REQUIRED', 'An API key may not do this, whatever its actions are: log in', 403
)
/** An API key lacks the action, whose name is the parameter. */
export const ActionNotGranted = defineError('ACTION_NOT_GRANTED', 'This API key does not have the action %s', 403)

/** How many API keys a user may have. */
export const MAX_API_KEYS_PER_USER = 50
/** More than there are actions, also with those of a host. */
const MAX_ACTIONS = 200

const ApiKeyName = line({ trim: true, minLength: 1, maxLength: 100, description: 'What it is for' })

/** The body of POST /api/auth/keys (contract 17.1). */
export const CreateApiKey = Type.Object({
  name: ApiKeyName,
  actions: Type.Optional(Type.Array(line({ maxLength: 100 }), {
    minItems: 1,
    maxItems: MAX_ACTIONS,
    description: 'The actions of the policy that it permits; without this member, all that a key can have',
  })),
  expiresAt: Type.Optional(Type.String({
    format: 'date-time', description: 'In the future. Without this member, it works until it is deleted',
  })),
  organizationId: Type.Optional(Type.String({
    maxLength: 100,
    description: 'The organisation for which the key acts, of which its user must be a member. It ends with the membership, also when that gets another role',
  })),
}, { title: 'CreateApiKey', examples: [{ name: 'Deployment', actions: ['posts:create'] }] })

export type CreateApiKey = Static<typeof CreateApiKey>

/** An API key, without its secret. */
export const ApiKey = Type.Object({
  id: Id,
  name: Type.String(),
  actions: Type.Unsafe<string[] | null>({
    type: ['array', 'null'],
    items: { type: 'string' },
    description: 'The actions of the policy that it permits; null if it permits all that a key can have',
  }),
  organizationId: nullable('The organisation for which it acts; null for none'),
  createdAt: Instant,
  lastUsedAt: optionalInstant('When it was used last, up to two minutes ago; null if it was not used yet'),
  expiresAt: optionalInstant('When it expires; null if it does not'),
}, { title: 'ApiKey', description: 'An API key, without its secret' })

export const ApiKeyList = Type.Array(ApiKey, { description: 'API keys that have not expired, newest first' })

/** The parameters of DELETE /api/auth/keys/{id}. */
export const DeleteApiKeyQuery = Type.Object({
  revokeLinks: Type.Optional(Type.Boolean({
    description: 'Whether the links to uploads that were created with the key are revoked. Without it, they stay',
  })),
})

/** The response to a new API key: the only one that has the key. */
export const CreatedApiKey = Type.Object({
  ...ApiKey.properties,
  key: Type.String({ description: 'The key. Store it: no other response has it. Send it as `Authorization: Bearer`' }),
}, { title: 'CreatedApiKey', description: 'The API key was created' })
