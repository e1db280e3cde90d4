import { Type } from '@sinclair/typebox'
import { Content, line, Title } from './text.ts'

/** `createPost(input:)`, beyond what the SDL says (contract 7.6). */
export const CreatePost = Type.Object({ title: Title, content: Content })

/** `updatePost(input:)`: null leaves a field as it is. */
export const UpdatePost = Type.Object({
  title: Type.Optional(Title),
  content: Type.Optional(Content),
})

/** The arguments of a list. */
export const ListArguments = Type.Object({
  first: Type.Integer({ minimum: 1, maximum: 100 }),
  role: Type.Optional(line()),
})
