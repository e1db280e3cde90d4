import { EVERYBODY, listUsers } from '../../../db/users/list-users.ts'
import { Type } from '@sinclair/typebox'
import { decodeUserCursor, encodeUserCursor, ListUsers } from '../../../schema/users/user-list.ts'
import { createParser } from '../../../schema/http/validator.ts'
import { namesOfRoles, type Roles } from '../../../schema/options/roles.ts'
import type { Command } from '../command.ts'
import { readRolesOf } from '../roles.ts'
import { formatTable } from '../table.ts'
import { withDatabase } from '../with-database.ts'
import { showUser, USER } from './shown.ts'

// A role that no user has is no error of a request, but probably a typing error on the command line.
const parserOf = (roles: Roles) => createParser(Type.Composite([
  Type.Object({ role: Type.Optional(Type.Unsafe<string>({ type: 'string', enum: namesOfRoles(roles) })) }),
  Type.Omit(ListUsers, ['fields', 'role']),
]))

export default {
  details: '  --role <role>     only users of this role: admin, user or one of the option roles\n' +
    '  --search <text>   only users of whose name or address some word begins with this\n' +
    '  --sort <order>    createdAt, name or email; with a hyphen, as in --sort=-name, in descending order\n' +
    '  --limit <number>  at most so many, from 1 to 1000, by default 100\n' +
    '  --after <cursor>  the next page, with the cursor that the previous one ends with',
  json: `{ users: [${USER}], next: cursor or null }`,
  options: {
    role: { type: 'string' },
    search: { type: 'string' },
    sort: { type: 'string' },
    limit: { type: 'string' },
    after: { type: 'string' },
  },

  run: async ({ role, search: q, sort: order, limit: limitText = '100', after: cursor }, _, shell) => {
    const parse = parserOf(await readRolesOf(shell))
    const { limit, after, ...filters } = parse({ role, q, sort: order, limit: Number(limitText), after: cursor })
    return withDatabase(shell, async ({ db }) => {
      const query = {
        ...filters,
        limit,
        addresses: { of: EVERYBODY },
        ...after !== undefined && { after: decodeUserCursor(after, filters) },
      }
      const { rows, next } = await listUsers(db, query)
      const last = next && encodeUserCursor(next, filters)
      const cells = rows.map(({ id, email, name, role, disabled, createdAt }) =>
        [id, email, name, role, disabled ? 'disabled' : 'enabled', createdAt])
      const table = formatTable(['ID', 'EMAIL', 'NAME', 'ROLE', 'STATE', 'CREATED'], cells)
      return {
        text: last === null ? table : `${table}\n\nThere are more: add --after ${last}`,
        json: { users: rows.map(showUser), next: last },
      }
    })
  },
} satisfies Command
