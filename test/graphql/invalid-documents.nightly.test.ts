import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { post } from '../helpers/graphql.ts'
import { countPromotedBytes } from '../helpers/promotion.ts'

const KiB = 1024
const UNLIMITED = { burst: 1e6, perMinute: 1e6 }

t.test('an invalid document costs little memory, although it is kept with its errors', async (t) => {
  const usher = await createUsher(t, { graphql: { documents: UNLIMITED, allDocuments: UNLIMITED } })
  let count = 0
  const send = async () => {
    const { errors } = await post(usher, { query: `{ users { nodes { name } } unknown${count++} }` })
    if (errors?.[0]?.extensions['code'] !== 'GRAPHQL_INVALID') throw new Error(`unexpected: ${JSON.stringify(errors)}`)
  }
  const measure = () => countPromotedBytes(200, send)
  await measure()
  const bytes = await measure() / 200
  t.ok(bytes < 45 * KiB, `${bytes} bytes of each were promoted`)
})
