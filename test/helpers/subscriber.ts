import type { Test } from 'tap'
import { openSocket, type TestSocket } from './graphql.ts'

/** Subscribes to all posts on a node until the test ends. Each message contains the title of one post. */
export async function subscribe (t: Test, node: { url: string }): Promise<TestSocket> {
  const subscriber = await (await openSocket(t, node)).init()
  subscriber.start('posts', 'subscription { postCreated { title } }')
  await subscriber.settle()
  return subscriber
}
