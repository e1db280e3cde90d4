import { Type } from '@sinclair/typebox'

const parts = ['uploads', 'posts', 'graphql', 'docs', 'pages'] as const

/** A part of Usher that a host may leave out. */
export type Part = typeof parts[number]

/** The option `without`. */
export const Without = Type.Array(Type.Unsafe<Part>({ type: 'string', enum: parts }), {
  default: [],
  description: 'Parts to leave out: `uploads`, `posts`, `graphql`, `docs`, `pages`',
})
