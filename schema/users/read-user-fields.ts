import { fieldsOfColumns, readFields, type FieldKind } from '../fields/read-fields.ts'
import { members } from './members.ts'
import { noFields, type FieldAudience, type UserField, type UserFields } from './user-fields.ts'

const kind: FieldKind<FieldAudience, UserField['write']> = {
  option: 'userFields',
  records: 'users',
  reserved: [
    ...Object.keys(members), 'emailChangedAt', 'passwordHash', 'token', 'posts', 'uploads', 'sessions', 'etag',
    'rowVersion', 'context', 'undoableBy', 'cookie', 'signUpId', 'logIn',
  ],
  readers: { anyone: undefined, owner: 'the user and admins', admin: 'admins' },
  writers: { owner: 'the user and admins', admin: 'admins' },
  defaults: { read: 'owner', write: 'admin' },
}

/** Returns the fields of the option `userFields`. Throws an `Error` that names the field. */
export const readUserFields = (given: unknown): UserFields => given === undefined ? noFields : readFields(given, kind)

/** Returns the fields that columns of users are, for whoever does not know the option `userFields`. */
export const userFieldsOfColumns = (given: readonly { name: string, type: string }[]): UserFields =>
  fieldsOfColumns(kind, given).map((field) => ({ ...field, read: 'admin', write: 'admin' }))
