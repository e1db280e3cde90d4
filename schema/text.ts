import { Type, type StringOptions } from '@sinclair/typebox'

/**
 * Text as Usher takes it (contract 1.8). The keywords are those of `schema/validator.ts`:
 * - `text: 'line'` refuses control characters and lone surrogates; `text: 'block'` lets tab and line ends pass;
 * - `trim` removes white space at both ends before anything is measured;
 * - `maxOctets` counts UTF-8; `uncommon` refuses the passwords that everybody tries first.
 */
export const line = (options: StringOptions = {}) => Type.String({ ...options, text: 'line' })
export const block = (options: StringOptions = {}) => Type.String({ ...options, text: 'block' })

/** A person's name: 1 to 200 characters, trimmed. */
export const Name = line({ trim: true, minLength: 1, maxLength: 200 })

/** An e-mail address of at most 254 octets (RFC 5321 4.5.3.1.3), trimmed; echoed as sent. */
export const Email = line({ trim: true, format: 'email', maxOctets: 254 })

/** A password to be set: 8 to 256 characters of any script (NIST 800-63B 3.1.1.2: no composition rules, no common ones). */
export const NewPassword = line({ minLength: 8, maxLength: 256, uncommon: true })

/** A password to be checked: whatever somebody typed, bounded. */
export const Password = line({ maxLength: 1024 })

/** A post's title: 1 to 200 characters, trimmed. */
export const Title = line({ trim: true, minLength: 1, maxLength: 200 })

/** A post's content: up to 64 KiB. */
export const Content = block({ maxOctets: 65536 })

/** The account of all examples in the API reference, which can be sent unchanged. */
export const exampleUser = { name: 'Ada Lovelace', email: 'ada@example.com', password: 'violet engine notes' }

export const Id = Type.String({ description: 'UUIDv7' })
/** A point in time: a `Date` here, RFC 3339 on the wire. */
export const Instant = Type.Unsafe<Date>({ type: 'string', format: 'date-time', description: 'RFC 3339, UTC' })
