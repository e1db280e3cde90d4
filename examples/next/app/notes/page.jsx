import { requireUser } from '../../lib/session.js'
import { LeaveAfterLogout } from './leave-after-logout.jsx'

export default async function Page () {
  const user = await requireUser('/notes')
  return (
    <>
      <LeaveAfterLogout />
      <h1>Notes of {user.name}</h1>
    </>
  )
}
