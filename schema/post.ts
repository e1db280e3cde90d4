import { Type } from '@sinclair/typebox'
import { Content, line, Title } from './text.ts'

/** `createPost(input:)`, beyond what the SDL says (contract 7.6). */
export const CreatePost = Type.Object({ title: Title, content: Content })

/** `updatePost(input:)`: null leaves a field as it is. */
export const UpdatePost = Type.Object({
  title: Type.Optional(Title),
  content: Type.Optional(Content),
})

/** How many rows a GraphQL list has if the client does not say, and at the most. */
export const USUAL_PAGE = 50
export const LARGEST_PAGE = 100

/** The arguments of a list. */
export const ListArguments = Type.Object({
  first: Type.Integer({ minimum: 1, maximum: LARGEST_PAGE }),
  role: Type.Optional(line()),
})
