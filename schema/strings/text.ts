import { Type, type StringOptions, type TSchema } from '@sinclair/typebox'

/**
 * Creates the schema of a text (contract 1.8). `schema/http/validator.ts` defines these keywords:
 * - `text: 'line'` rejects control characters and lone surrogates; `text: 'block'` allows tabs and line breaks;
 * - `trim` removes white space at both ends before other keywords are checked, and a text of invisible characters only;
 * - `asciiDomain` writes the domain of an e-mail address in ASCII (`schema/strings/address.ts`);
 * - `normalized` normalizes a password (`schema/sign-in/passwords/passwords.ts`);
 * - `maxBytes` limits the number of bytes in UTF-8;
 * - `uncommon` rejects common passwords;
 * - `notNull` says that null is not a value, in bodies in which a member may be absent.
 */
export const line = (options: StringOptions = {}) => Type.String({ ...options, text: 'line' })
export const block = (options: StringOptions = {}) => Type.String({ ...options, text: 'block' })

/** Returns a schema of a member that may be absent, and whose value is never null. */
export const notNull = <Schema extends TSchema>(schema: Schema): Schema => ({ ...schema, notNull: true })

/** A person's name: 1 to 200 characters, trimmed. */
export const Name = line({ trim: true, minLength: 1, maxLength: 200 })

/**
 * An e-mail address of at most 254 bytes (RFC 5321 4.5.3.1.3), trimmed, with an internationalized domain in ASCII
 * (RFC 5891), and otherwise returned as it was sent.
 */
export const Email = line({ trim: true, asciiDomain: true, format: 'email', maxBytes: 254 })

/** An address to look for. One that cannot exist is not an error: no user has it. */
export const KnownEmail = line({ trim: true, asciiDomain: true, maxLength: 1024 })

/**
 * A new password: 8 to 256 characters of any script, once it is normalized. As NIST 800-63B 3.1.1.2 demands, there are
 * no composition rules, and common passwords are rejected.
 */
export const NewPassword = line({ normalized: true, minLength: 8, maxLength: 256, uncommon: true })

/** A password to be verified: any text up to a maximum length, which the longest new one has in no form. */
export const Password = line({ maxLength: 1024 })

/** A post's title: 1 to 200 characters, trimmed. */
export const Title = line({ trim: true, minLength: 1, maxLength: 200 })

/** The maximum size of a post's content. Other limits follow from it, see docs/decisions/limits.md. */
export const CONTENT_BYTES = 64 * 1024

/** A post's content. */
export const Content = block({ maxBytes: CONTENT_BYTES, description: `At most ${CONTENT_BYTES} bytes in UTF-8` })

/** The account in all examples of the API reference. The examples can be sent unchanged. */
export const exampleUser = { name: 'Ada Lovelace', email: 'ada@example.com', password: 'violet engine notes' }

/** A text of a response that may be null. */
export const nullable = (description: string) => Type.Unsafe<string | null>({ type: ['string', 'null'], description })

export const Id = Type.String({ description: 'UUIDv7' })
/** An instant: a `Date` in the code, RFC 3339 in responses. */
export const Instant = Type.Unsafe<Date>({ type: 'string', format: 'date-time', description: 'RFC 3339, UTC' })
/** The schema of an instant in responses that may be null. */
export const optionalInstant = (description: string) =>
  Type.Unsafe<Date | null>({ type: ['string', 'null'], format: 'date-time', description })

// Characters without a glyph: white space, what Unicode says to ignore (zero-width and bidirectional marks, Hangul
// fillers, tags), and those that are blank nevertheless: an empty braille pattern, marks of annotations, a musical
// symbol, and controls of hieroglyphs.
const INVISIBLE = /^[\p{Z}\s\p{DI}\p{NChar}\u2800\ufff9-\ufffb\u{1d159}\u{13430}-\u{1343f}]*$/u

/** Returns whether nothing of a text can be seen. Control characters, which texts must not have, do not count. */
export const isBlank = (text: string): boolean => INVISIBLE.test(text)
