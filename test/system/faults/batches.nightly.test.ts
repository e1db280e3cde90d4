import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { createUsher } from '../../helpers/app.ts'
import { hostOf, openSocket, post } from '../../helpers/graphql.ts'
import { openSql } from '../../helpers/sql.ts'
import { findFaults, noFaults, startWrites } from '../../helpers/writes.ts'

t.test('SPEED 3 writes that share a batch with writes of others, on two nodes', async (t) => {
  const usher = await createUsher(t)
  const nodes = [usher, await createUsher(t, usher.options)]
  const { admin, inject } = usher
  const sql = openSql(t, usher)

  const subscribers = await Promise.all(nodes.map(async (node) => {
    const socket = await (await openSocket(t, node)).init()
    socket.start('posts', 'subscription { postCreated { id } }')
    await socket.settle()
    return socket
  }))
  const loads = await Promise.all(
    nodes.map(async (node) => startWrites({ url: `http://${await hostOf(node)}`, headers: node.admin.headers }, 16))
  )
  const create = (email: string) =>
    inject('POST', '/api/users', { headers: admin.headers, payload: { name: 'Somebody', email } })
  const write = async (authorId: string) => {
    const { data, errors } = await post(usher, {
      query: 'mutation ($id: ID!) { createPost(input: { title: "Other", content: "", authorId: $id }) { title } }',
      variables: { id: authorId },
    }, admin)
    return data?.createPost?.title ?? errors?.[0]?.extensions.code
  }

  await t.test('2.3 of two users with the same address, in the same batch or not, one is created and the other gets 409', async (t) => {
    for (let round = 0; round < 20; round++) {
      const answers = Array.from({ length: 5 }, async (_, index) => {
        const first = create(`pair-${round}-${index}@example.com`)
        for (let turns = 0; turns < round % 10; turns++) await turn()
        const both = await Promise.all([first, create(`PAIR-${round}-${index}@example.com`)])
        return both.map((answer) =>
          answer.statusCode === 201 ? 'created' : `${answer.statusCode} ${answer.json().code}`)
          .sort()
      })
      t.strictSame(await Promise.all(answers), Array(5).fill(['409 EMAIL_TAKEN', 'created']))
    }
    t.same(await sql`select count(*)::int from users where email ilike 'pair-%'`, [{ count: 100 }])
  })

  await t.test('7.6 if an author is being deleted or does not exist, only the posts with this author fail', async (t) => {
    for (let round = 0; round < 5; round++) {
      const [gone, stays] = await Promise.all(
        ['gone', 'stays'].map(async (name) => (await create(`${name}-${round}@example.com`)).json().id)
      )
      await sql.begin(async (deletion) => {
        await deletion`delete from users where id = ${gone}`
        t.strictSame(
          await Promise.all([stays, gone, stays, gone, stays].map(write)),
          ['Other', 'OVERLOADED', 'Other', 'OVERLOADED', 'Other']
        )
      })
      t.strictSame(await Promise.all([stays, gone, stays].map(write)), ['Other', 'USER_NOT_FOUND', 'Other'])
    }
  })

  await Promise.all(loads.map((load) => load.acknowledge(100)))
  await Promise.all(loads.map((load) => load.stop()))
  const sent = loads.flatMap(({ sent }) => sent)

  await t.test('SPEED 3 all other writes have succeeded', async (t) => {
    t.strictSame(sent.filter(({ id }) => !id), [])
    t.strictSame(await findFaults(sql, sent), noFaults)
    const batches = await sql`select count(*)::int from users group by xmin having count(*) > 1`
    t.ok(batches.length > 0, 'some statements inserted rows of several requests')
  })

  await t.test('7.7 the subscribers of each node receive each post once, in commit order', async (t) => {
    const committed = await sql`select id from posts order by position`.then((rows) => rows.map(({ id }) => id))
    for (const socket of subscribers) {
      const told: string[] = []
      while (told.length < committed.length) told.push((await socket.next()).payload!.data.postCreated.id)
      t.strictSame(told, committed)
    }
  })
})
