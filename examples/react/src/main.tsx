import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Account, SignIn, SignUp, UserButton, UsherProvider, useSession } from 'usher-client/react'
import 'usher-client/react.css'
import './fields.ts'
import { Sessions } from './sessions.tsx'

const pages: Record<string, () => React.ReactNode> = {
  '/': () => <Home />,
  '/sign-in': () => <SignIn signUpUrl='/sign-up' onSignIn={() => location.assign('/')} />,
  '/sign-up': () => <SignUp signInUrl='/sign-in' />,
  '/account': () => <Account />,
}

function Home () {
  const { state } = useSession()
  if (state === 'unknown') return <p>One moment …</p>
  return state === 'active' ? <Sessions /> : <p>Log in to see your sessions.</p>
}

function App () {
  const Page = pages[location.pathname] ?? (() => <p>There is no such page.</p>)
  return (
    <UsherProvider baseUrl='/accounts'>
      <header>
        <h1>Notes</h1>
        <UserButton signInUrl='/sign-in' accountUrl='/account' />
      </header>
      <Page />
    </UsherProvider>
  )
}

createRoot(document.querySelector('main')!).render(<StrictMode><App /></StrictMode>)
