import { runTogether } from '../helpers/run-together.ts'

runTogether(
  'routes/graphql/{event-stream,failed-events,host-live,resume,shared-operation,socket*,sse,subscriptions,time-slice,upgrades}.test.ts'
)
