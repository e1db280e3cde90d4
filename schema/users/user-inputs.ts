import type { Static, TObject } from '@sinclair/typebox'
import { createExtension, type UserExtension } from './extend-user.ts'
import { SignUp } from '../mail-links/sign-ups.ts'
import { CreateUser, PatchUser } from './users.ts'
import type { UserFields } from './user-fields.ts'
import type { Roles } from '../options/roles.ts'
import { createParser } from '../http/validator.ts'

/** What a caller gives about a user, with the fields of the host. The types do not know the fields. */
export interface UserInput<Value> {
  /** Returns a copy with defaults. Throws `InvalidInput`. */
  parse (given: unknown): Value
  /** Returns whether an object has any of the members. */
  isIn (given: object): boolean
  /** Returns a copy without the members that there are not, and without those that are undefined. */
  pick (given: object): Value
}

const known = new WeakMap<UserFields, WeakMap<Roles, ReturnType<typeof create>>>()

/** Returns the inputs of a mount with these fields and roles. */
export function userInputs ({ userFields, roles }: UserExtension): ReturnType<typeof create> {
  const ofFields = known.get(userFields) ?? new WeakMap<Roles, ReturnType<typeof create>>()
  known.set(userFields, ofFields)
  const inputs = ofFields.get(roles) ?? create({ userFields, roles })
  ofFields.set(roles, inputs)
  return inputs
}

function create (extension: UserExtension) {
  const extend = createExtension(extension)
  const inputOf = <Schema extends TObject>(schema: Schema): UserInput<Static<Schema>> => {
    const extended = extend(schema)
    const has = (name: string) => Object.hasOwn(extended.properties, name)
    return {
      parse: createParser(extended),
      isIn: (given) => Object.keys(given).some(has),
      pick: (given) => Object.fromEntries(Object.entries(given)
        .filter(([name, value]) => value !== undefined && has(name))) as Static<Schema>,
    }
  }
  return { creation: inputOf(CreateUser), patch: inputOf(PatchUser), signUp: inputOf(SignUp) }
}
