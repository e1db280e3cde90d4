import { runTogether } from '../helpers/run-together.ts'

runTogether('plugins/{event-loop-load,in-turn,mails,mailer,retries}.test.ts', 'plugins/outbox/*.test.ts')
