import { decodeCursor, encodeCursor } from '../../../schema/http/cursor.ts'
import { createParser } from '../../../schema/http/validator.ts'
import { ListOrganizations } from '../../../schema/organizations/organizations.ts'
import type { Command } from '../command.ts'
import { formatTable } from '../table.ts'
import { ORGANIZATION, showOrganization, withOrganizations } from './shown.ts'

const parse = createParser(ListOrganizations)

export default {
  details: '  --search <text>   only organisations whose name or slug begins with this\n' +
    '  --limit <number>  at most so many, from 1 to 1000, by default 100\n' +
    '  --after <cursor>  the next page, with the cursor that the previous one ends with',
  json: `{ organizations: [${ORGANIZATION}], next: cursor or null }`,
  options: { search: { type: 'string' }, limit: { type: 'string' }, after: { type: 'string' } },

  run ({ search: q, limit: limitText = '100', after: cursor }, _, shell) {
    const { limit, after, ...filter } =
      parse({ limit: Number(limitText), ...q !== undefined && { q }, ...cursor !== undefined && { after: cursor } })
    return withOrganizations(shell, async ({ organizations, caller }) => {
      const { rows, next } =
        await organizations.list(caller, { ...filter, limit, after: after && decodeCursor(after) })
      const last = next && encodeCursor(next)
      const table =
        formatTable(['ID', 'SLUG', 'NAME', 'CREATED'], rows.map(({ id, slug, name, createdAt }) => [id, slug, name, createdAt]))
      return {
        text: last === null ? table : `${table}\n\nThere are more: add --after ${last}`,
        json: { organizations: rows.map(showOrganization), next: last },
      }
    })
  },
} satisfies Command
