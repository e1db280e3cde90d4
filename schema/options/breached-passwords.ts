import { Type, type Static } from '@sinclair/typebox'

/** The option `breachedPasswords`: where new passwords are looked up among those of breaches (contract 23.1). */
export const BreachedPasswords = Type.Object({
  file: Type.Optional(Type.String({
    minLength: 1,
    maxLength: 4096,
    description: 'The file of Pwned Passwords, ordered by SHA-1: lines such as 000000005AD76BD555C1D6D771DE417A4B87E4B4:10',
  })),
  url: Type.Optional(Type.String({
    maxLength: 500,
    pattern: '^https?://[^?#@\\s]+$',
    description: 'A service of ranges, such as https://api.pwnedpasswords.com/range/; the first five digits of a SHA-1 follow',
  })),
}, { additionalProperties: false, description: 'Where breached passwords are looked up; nowhere by default' })

export type GivenBreachedPasswords =
  { [Name in keyof Static<typeof BreachedPasswords>]?: Static<typeof BreachedPasswords>[Name] | undefined }
