import { useEffect, useState, useSyncExternalStore } from 'react'
import type { SessionState, User, UsherClient } from '../index.ts'
import { useClient } from './context.ts'

// What a server renders, which has no session.
const UNKNOWN: SessionState = Object.freeze({ state: 'unknown', user: undefined })

/** The state of the session, and why the first attempt to continue it has failed, such as a network that is down. */
export interface UsedSession extends SessionState {
  readonly error?: unknown
}

/**
 * Returns the state of the session of a client, and renders again when it changes, in every tab. The first use
 * continues the session of the browser's cookie. Until the server has answered, `state` is `unknown`.
 */
export function useSession (client?: Pick<UsherClient, 'session'>): UsedSession {
  const { session } = useClient(client)
  const [error, setError] = useState<unknown>()
  const state = useSyncExternalStore(
    (listener) => session.subscribe(listener), () => session.current, () => UNKNOWN
  )
  useEffect(() => {
    let isMounted = true
    session.restore().catch((error) => { if (isMounted) setError(error) })
    return () => { isMounted = false }
  }, [session])
  return error === undefined || state.state !== 'unknown' ? state : { ...state, error }
}

/** Returns the user who has logged in, or undefined, like `useSession`. */
export const useUser = (client?: Pick<UsherClient, 'session'>): User | undefined => useSession(client).user
