import t from 'tap'
import { finishDocument } from '../../schema/http/openapi.ts'

t.test('8 schemas with a title become components, and keywords of the validator are removed, but not from data', async (t) => {
  const examples = [{ text: 'line', title: 'A title', trim: true }]
  const schema = {
    title: 'Note', type: 'object', properties: { text: { type: 'string', text: 'block', maxBytes: 10 } }, examples,
  }
  const { paths, components } =
    finishDocument({ paths: { '/notes': { post: { requestBody: { schema }, responses: {} } } } }) as Record<
      string, object
    >
  t.same(paths, {
    '/notes': { post: { requestBody: { schema: { $ref: '#/components/schemas/Note' } }, responses: {}, security: [] } },
  })
  t.same(components, {
    responses: {},
    schemas: {
      Note: { title: 'Note', type: 'object', properties: { text: { type: 'string', maxLength: 10 } }, examples },
    },
  })
})
