// Starts a node and attacks it: `npm run test:attack -- [--requests 1000000] [--seed 1] [--combined]`. See
// docs/attack.md.
import { writeFile } from 'node:fs/promises'
import { requireOpenFiles } from '../../bench/options.ts'
import { combined, printCombined } from './combined/index.ts'
import { openMailbox } from './combined/mailbox.ts'
import { fromNetworks, printNetworks } from './combined/networks.ts'
import { fuzz } from './fuzzer.ts'
import { chooseAttacks } from './fuzz/index.ts'
import { killHelpers } from './helpers.ts'
import { readOptions } from './options.ts'
import { printResult } from './report.ts'
import { openStage } from './stage.ts'

const OPEN_FILES = 4096
// With those of the subscriptions.
const OPEN_FILES_BEHIND_PROXY = 8192

const options = readOptions(process.argv.slice(2))
// An unknown attack is reported before anything is started.
if (!options.combined) chooseAttacks(options)
requireOpenFiles(options.from.length > 0 ? OPEN_FILES_BEHIND_PROXY : OPEN_FILES)
const mailbox = options.from.length > 0 ? await openMailbox() : undefined
const stage = await openStage({ ...options, ...mailbox && { settings: settingsBehindProxy(mailbox.url) } })
let isInterrupted = false
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt)

try {
  if (mailbox) await finish(await fromNetworks(stage, mailbox, options), printNetworks)
  else if (options.combined) await finish(await combined(stage, options), printCombined)
  else await finish(await fuzz(stage, options), printResult)
} catch (error) {
  if (!isInterrupted) throw error
} finally {
  killHelpers()
  await stage.close()
  await mailbox?.close()
}

async function finish<Result extends { counted?: object, holds?: boolean }> (
  result: Result, print: (result: Result) => void
): Promise<void> {
  print(result)
  if (options.json !== undefined) await writeFile(options.json, JSON.stringify(result, null, 2))
  process.exitCode = result.holds ?? Object.keys(result.counted!).length === 0 ? 0 : 1
}

// When the generators end, the run ends and cleans up. Ctrl-C also reaches the node, which is not a crash.
function interrupt (): void {
  isInterrupted = true
  process.exitCode = 130
  killHelpers()
  void stage.node.stop()
}

function settingsBehindProxy (smtpUrl: string): Record<string, string> {
  return {
    TRUST_PROXY: 'loopback',
    PUBLIC_URL: 'http://localhost',
    SMTP_URL: smtpUrl,
    MAIL_FROM: 'usher@example.com',
    SIGN_UP: 'true',
    LOGIN_MAIL: 'true',
    EMAILS_VISIBLE_TO: 'anyone',
  }
}
