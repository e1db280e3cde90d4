import { once } from 'node:events'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { TestSocket } from './graphql.ts'

/** Subscribes to the posts that a node tells of, until the test's end; of each the next message has the title. */
export async function subscribe (t: Test, { url }: { url: string }): Promise<TestSocket> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws')
  t.teardown(() => socket.terminate())
  const subscriber = new TestSocket(socket, 'graphql-transport-ws')
  await once(socket, 'open')
  await subscriber.init()
  subscriber.start('posts', 'subscription { postCreated { title } }')
  await subscriber.settle()
  return subscriber
}
