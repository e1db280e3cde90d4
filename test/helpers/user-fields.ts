import { Type, type TObject } from '@sinclair/typebox'

/** Fields of every type, for every audience. */
export const userFields = Type.Object({
  bio: Type.Optional(
    Type.String({ description: 'A text about the user', maxLength: 200, 'x-write': 'owner', 'x-read': 'anyone' })
  ),
  phone: Type.Optional(Type.String({ 'x-write': 'owner' })),
  plan: Type.Union([Type.Literal('free'), Type.Literal('pro')], { default: 'free' }),
  score: Type.Optional(Type.Integer({ minimum: 0, maximum: 100, 'x-read': 'anyone' })),
  spent: Type.Optional(Type.Integer({ 'x-read': 'admin' })),
  ratio: Type.Number({ default: 0.5 }),
  newsletter: Type.Optional(Type.Boolean({ 'x-write': 'owner' })),
  tags: Type.Optional(
    Type.Array(Type.String({ maxLength: 20 }), { maxItems: 1000, 'x-write': 'owner', 'x-read': 'anyone' })
  ),
  settings: Type.Object({ theme: Type.Optional(Type.String()) }, { default: { theme: 'light' }, 'x-write': 'owner' }),
  note: Type.Optional(Type.String({ 'x-read': 'admin' })),
}) satisfies TObject
