import { Type } from '@sinclair/typebox'

/** The path parameters of a single record. Any text that is not the id of one leads to 404. */
export const IdParams = Type.Object({ id: Type.String() })

/** The path parameters of a session of a user. */
export const UserSessionParams = Type.Object({ id: Type.String(), sessionId: Type.String() })

/** The path parameters of a passkey of a user. */
export const UserPasskeyParams = Type.Object({ id: Type.String(), passkeyId: Type.String() })

/** The path parameters of an API key of a user. */
export const UserKeyParams = Type.Object({ id: Type.String(), keyId: Type.String() })

/** The path parameters of an identity of a user. */
export const UserIdentityParams = Type.Object({ id: Type.String(), identityId: Type.String() })

/**
 * Returns the parameters of a list that is paged with a cursor.
 * @param rows the plural of what is listed, such as `Users`
 */
export const pageQuery = (rows: string) => ({
  limit: Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: `${rows} per page` }),
  after: Type.Optional(Type.String({
    format: 'cursor',
    description: 'The cursor of the page, from the `Link` header of the previous page',
  })),
})

/** The headers of a change that may depend on the version of what it changes, see `schema/http/entity-tag.ts`. */
export const PreconditionHeaders = Type.Object({
  'if-match': Type.Optional(Type.String({
    description: 'Entity tags. If none of them is the current one, the response is 412 and nothing changes',
  })),
  'if-none-match': Type.Optional(Type.String({
    description: 'Entity tags. If one of them is the current one, the response is 412 and nothing changes',
  })),
})
