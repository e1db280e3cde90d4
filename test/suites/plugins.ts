import { runTogether } from '../helpers/run-together.ts'

runTogether('plugins/{bounded-rows,event-loop-load,in-turn,mail-limits,mails,mailer,retries,void-mails}.test.ts', 'plugins/outbox/*.test.ts')
