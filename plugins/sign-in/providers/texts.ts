import { Type } from '@sinclair/typebox'
import { InvalidInput } from '../../../schema/http/errors.ts'
import { createParser } from '../../../schema/http/validator.ts'
import { Email, isBlank, Name } from '../../../schema/strings/text.ts'

const NAME_CHARACTERS = 200
const MAX_CHARACTERS = 1000

const parseEmail = createParser(Type.Object({ email: Email }))
const parseName = createParser(Type.Object({ name: Name }))

/** Returns the address that a provider gives as it is stored, or undefined if it is none. */
export const emailOf = (email: string | undefined): string | undefined =>
  email === undefined || email.length > MAX_CHARACTERS ? undefined : parsed(() => parseEmail({ email }).email)

/** Returns whether something is a text in which people see anything. */
export const isNameLike = (value: unknown): value is string => typeof value === 'string' && !isBlank(visibleIn(value))

/** Returns the name of a new user: that which the provider gives, or else what precedes the `@` of the address. */
export function nameOf (given: string | undefined, email: string): string {
  const visible = visibleIn(given ?? '')
  const name = isBlank(visible) ? email.slice(0, email.lastIndexOf('@')) : visible
  return parsed(() => parseName({ name: [...name].slice(0, NAME_CHARACTERS).join('') }).name) ?? email.slice(0, NAME_CHARACTERS)
}

const visibleIn = (name: string): string => name.slice(0, MAX_CHARACTERS).replace(/[\p{Cc}\p{Cs}]/gu, ' ').trim()

function parsed<Value> (parse: () => Value): Value | undefined {
  try {
    return parse()
  } catch (error) {
    if (error instanceof InvalidInput) return undefined
    throw error
  }
}
