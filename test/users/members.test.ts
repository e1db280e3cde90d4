import { readFileSync } from 'node:fs'
import { buildSchema, isObjectType } from 'graphql'
import t from 'tap'
import { readSdl } from '../../schema/graphql/sdl.ts'
import { eventMembers, importedMembers, shownMembers } from '../../schema/users/members.ts'
import { noRoles } from '../../schema/options/roles.ts'
import { noFields } from '../../schema/users/user-fields.ts'
import { CreateUser, PatchUser, ReplaceUser, User } from '../../schema/users/users.ts'

const read = (file: string) => readFileSync(new URL(`../../docs/${file}`, import.meta.url), 'utf8')

t.test('2.2 GraphQL has every member of users that REST has', async (t) => {
  const type = buildSchema(readSdl({ without: [], userFields: noFields, roles: noRoles, organizations: undefined })).getType('User')
  const fields = isObjectType(type) ? Object.keys(type.getFields()) : []
  // Its `etag` says whether a user has changed.
  t.same(shownMembers.filter((name) => !fields.includes(name)), ['updatedAt'])
})

t.test('1.9 what GET returns can be sent to PUT, so members that may be null accept it', async (t) => {
  const allowsNull = (schema: object) => [Reflect.get(schema, 'type')].flat().includes('null')
  const shown: Record<string, object> = User.properties
  const requests = [CreateUser, ReplaceUser, PatchUser]
  for (const [name, schema] of requests.flatMap(({ properties }) => Object.entries(properties))) {
    const output = shown[name]
    if (output) t.equal(allowsNull(schema), allowsNull(output), name)
    else t.equal(name, 'password', 'no other member is written only')
  }
})

t.test('the documents name the members of users where they list them', async (t) => {
  const lists = [
    { file: 'operations/commands.md', line: /^In the shapes below, a user is `\{ (.*?) \}`/m, names: shownMembers },
    { file: 'host/events.md', line: /^\| `user\.created`, `user\.updated` \|.*$/m, names: eventMembers },
    { file: 'operations/import.md', line: /^\| member \| \|\n(?:\|.*\n)+/m, names: importedMembers },
  ]
  for (const { file, line, names } of lists) {
    const [text = ''] = line.exec(read(file)) ?? []
    for (const name of names) t.match(text, new RegExp(`\\b${name}\\b`), `${file}: ${name}`)
  }
})
