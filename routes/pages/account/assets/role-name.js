import { texts } from './page.js'

const NAMES = { owner: 'ownerRole', admin: 'adminRole', member: 'memberRole' }

/** Returns what a role in an organisation is called. Those of the options have no other name. */
export const roleName = (role) => texts[NAMES[role]] ?? role
