import t from 'tap'
import type { Actor } from '../../app.ts'
import { actorOf } from '../helpers/actor.ts'
import { sharedUsher } from '../helpers/app.ts'
import { createEndDuring, lockTable } from '../helpers/end-during.ts'
import { createPost } from '../helpers/graphql.ts'
import { upload } from '../helpers/uploads.ts'

t.test('12.1 a read of the host for an actor rejects if the session ends before it has the result', async (t) => {
  const usher = await sharedUsher()
  const { endDuring } = createEndDuring(t, usher)
  const { users, posts, uploads } = usher.app.usher
  const { id: uploadId } = await upload(usher, 'Hello')
  const postId = await createPost(usher, usher.admin)
  const reads: [name: string, table: string, read: (actor: Actor) => Promise<unknown>][] = [
    ['users.get', 'users', (actor) => users.get(usher.admin.id, { actor })],
    ['users.find', 'users', (actor) => users.find(usher.admin.email, { actor })],
    ['users.list', 'users', (actor) => users.list({}, { actor })],
    ['posts.get', 'posts', (actor) => posts.get(postId, { actor })],
    ['posts.list', 'posts', (actor) => posts.list({}, { actor })],
    ['uploads.get', 'uploads', (actor) => uploads.get(uploadId, { actor })],
    ['uploads.list', 'uploads', (actor) => uploads.list({}, { actor })],
    ['an unknown user', 'users', (actor) => users.get(postId, { actor })],
  ]
  for (const [name, table, read] of reads) {
    const user = await usher.createUser()
    const actor = await actorOf(usher, user)
    const code = await endDuring(user, lockTable(table), () => read(actor).then(() => 'read', ({ code }) => code))
    t.equal(code, 'INVALID_TOKEN', name)
  }
})
