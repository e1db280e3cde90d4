'use client'

import { useEffect } from 'react'
import { useSession } from 'usher-client/react'

/** Leaves a page that a server has rendered for a user whose session is over. */
export function LeaveAfterLogout () {
  const { state } = useSession()
  useEffect(() => {
    if (state === 'none') location.assign('/sign-in')
  }, [state])
  return null
}
