import { readFileSync } from 'node:fs'
import type { UserField, UserFields } from './user-fields.ts'

const own = readFileSync(new URL('./schema.graphql', import.meta.url), 'utf8')

/** Returns the SDL of a mount, with the fields that the host adds to users. */
export function createSdl (fields: UserFields): string {
  if (fields.length === 0) return own
  const members = fields.map((field) => `  ${JSON.stringify(describe(field))}\n  ${field.name}: ${field.graphql}\n`).join('')
  const sdl = own.replace(/^type User \{[^}]*/m, (type) => type + members)
  return hasJson(fields) ? `"A JSON value."\nscalar JSON\n\n${sdl}` : sdl
}

/** Returns whether the SDL has the scalar JSON. */
export const hasJson = (fields: UserFields): boolean => fields.some(({ graphql }) => graphql === 'JSON')

const describe = ({ output }: UserField): string => String(output.description).replace(/^Absent|\. Absent/, (text) => text.replace('Absent', 'Null'))
