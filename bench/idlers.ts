// The client of idle.ts, in its own process. It opens sockets that subscribe and stay open.
import type { Idle } from './idle.ts'
import { given, openAll, subscribe, tell } from './sockets.ts'

const { url, sockets } = given<Idle>()
await openAll(sockets, () => subscribe(url, { query: 'subscription { postCreated { id title } }' }, () => {}))
tell({ sockets })
// The open sockets keep the process alive until it is stopped.
