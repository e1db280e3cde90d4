// The client of idle.ts, a process of its own: sockets that have subscribed, and stay.
import type { Idle } from './idle.ts'
import { given, openAll, subscribe, tell } from './sockets.ts'

const { url, sockets } = given<Idle>()
await openAll(sockets, () => subscribe(url, { query: 'subscription { postCreated { id title } }' }, () => {}))
tell({ sockets })
// Until it is stopped.
