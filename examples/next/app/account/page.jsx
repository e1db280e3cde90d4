import { Account } from 'usher-client/react'

export default function Page () {
  return (
    <>
      <h1>Your account</h1>
      <Account />
    </>
  )
}
