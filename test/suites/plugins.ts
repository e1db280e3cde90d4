import { runTogether } from '../helpers/run-together.ts'

runTogether(
  'plugins/{bounded-rows,dependencies,event-loop-load,fair-queue,in-turn,mail-limits,mails,mailer,recent-rejections,retries,token-bucket,void-mails}.test.ts',
  'plugins/outbox/*.test.ts'
)
