import { once } from 'node:events'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { TestSocket } from './graphql.ts'

/** Opens a socket to a node with this payload of `connection_init`. It is closed when the test ends. */
export async function connectSocket (t: Test, { url }: { url: string }, payload?: object): Promise<TestSocket> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws')
  t.teardown(() => socket.terminate())
  const open = new TestSocket(socket, 'graphql-transport-ws')
  await once(socket, 'open')
  return open.init(payload)
}

/** Subscribes to all posts on a node until the test ends. Each message contains the title of one post. */
export async function subscribe (t: Test, node: { url: string }): Promise<TestSocket> {
  const subscriber = await connectSocket(t, node)
  subscriber.start('posts', 'subscription { postCreated { title } }')
  await subscriber.settle()
  return subscriber
}
