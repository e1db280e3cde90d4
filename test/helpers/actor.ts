import type { Actor } from '../../app.ts'
import type { LoggedIn, TestUsher } from './app.ts'

/** Returns the actor of a request with the token of a user, as a route of the host gets it. */
export async function actorOf ({ app }: TestUsher, { token }: Pick<LoggedIn, 'token'>): Promise<Actor> {
  const request = { headers: { authorization: `Bearer ${token}` } } as { headers: object, actor?: Actor }
  await app.usher.authenticate(request as never, {} as never)
  return request.actor!
}
