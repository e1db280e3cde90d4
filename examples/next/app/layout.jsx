import { UserButton, UsherProvider } from 'usher-client/react'
import 'usher-client/react.css'

export const metadata = { title: 'Notes' }

export default function Layout ({ children }) {
  return (
    <html lang='en'>
      <body>
        <UsherProvider baseUrl='/accounts'>
          <header><UserButton signInUrl='/sign-in' accountUrl='/account' /></header>
          <main>{children}</main>
        </UsherProvider>
      </body>
    </html>
  )
}
