import { useState } from 'react'
import { useProfile, useSessions } from 'usher-client/react'

// What the hooks are for: an own list in place of the one of <Account>.
export function Sessions () {
  const { data: sessions = [], error, isLoading, reload, end } = useSessions()
  const { data: user } = useProfile()
  const [failure, setFailure] = useState<unknown>()
  const problem = failure ?? error
  return (
    <section>
      <h2>Sessions of {user?.name}</h2>
      {user?.bio && <p>{user.bio}</p>}
      {problem !== undefined && <p role='alert'>{String(problem)}</p>}
      <ul>
        {sessions.map(({ id, address, current }) => (
          <li key={id}>
            {address} {current ? '(this one)' : <button onClick={() => end(id).catch(setFailure)}>End</button>}
          </li>
        ))}
      </ul>
      <button onClick={reload} aria-busy={isLoading}>Reload</button>
    </section>
  )
}
