import { readFile } from 'node:fs/promises'
import { buildSchema, getNamedType, type GraphQLObjectType } from 'graphql'
import t from 'tap'
import { texts } from '../../../routes/graphql/result-size.ts'

// These have a limited length, whatever clients send.
const SHORT = ['cursor']

t.test('7.8 every text whose length clients choose counts towards the size of responses', async (t) => {
  const schema = buildSchema(await readFile(new URL('../../../schema/schema.graphql', import.meta.url), 'utf8'))
  for (const type of ['User', 'Post']) {
    const fields = Object.values((schema.getType(type) as GraphQLObjectType).getFields())
    const strings = fields.filter((field) => getNamedType(field.type).name === 'String').map(({ name }) => name)
    t.ok(strings.length > 0)
    t.same(strings.filter((name) => !SHORT.includes(name) && !(texts as readonly string[]).includes(name)), [], type)
  }
})
