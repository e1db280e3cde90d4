'use client'

import { SignIn } from 'usher-client/react'
import { continueUrl } from '../../lib/usher.js'

export default function Page () {
  // The server gets the session before it renders the next page.
  const goOn = () => location.assign(continueUrl(new URLSearchParams(location.search).get('returnTo') ?? '/'))
  return <SignIn onSignIn={goOn} />
}
