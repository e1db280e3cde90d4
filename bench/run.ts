// Runs the benchmark: `npm run bench [-- --works user,fanout --rounds 3 --seconds 5 --json results.json]`. It starts
// everything it needs. bench/README.md explains the figures.
import { writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { Messages } from '../node/terminal/print.ts'
import { showProgress } from '../node/terminal/progress.ts'
import { apiKeys } from './api-keys.ts'
import { comeback } from './comeback.ts'
import { compare } from './compare.ts'
import { databaseSocket } from './database-socket.ts'
import { fanout, flow } from './fanout.ts'
import { floor } from './floor.ts'
import { idle } from './idle.ts'
import { compared, type Compared } from './load.ts'
import { keyed } from './keyed.ts'
import { lists } from './lists.ts'
import { longRun } from './long-run.ts'
import { metrics } from './metrics.ts'
import { parts, readOptions, requireOpenFiles, type Options, type Part } from './options.ts'
import { organizations } from './organizations.ts'
import { outbox } from './outbox.ts'
import { CONNECTIONS, overload } from './overload.ts'
import { postgraphile } from './postgraphile.ts'
import { quotas } from './quotas.ts'
import { print, type Report } from './report.ts'
import { revalidate } from './revalidate.ts'
import { scale } from './scale.ts'
import { search } from './search.ts'
import { soak } from './soak.ts'
import { openStage, type Stage } from './stage.ts'
import { uploads } from './uploads.ts'

const run: Record<Part, (stage: Stage) => Promise<Report>> = {
  floor,
  revalidate,
  fanout,
  flow,
  comeback,
  idle,
  scale,
  lists,
  overload,
  outbox,
  keyed,
  quotas,
  metrics,
  'api-keys': apiKeys,
  organizations,
  search,
  'database-socket': databaseSocket,
  postgraphile,
  uploads,
  soak,
  'long-run': longRun,
}
// Besides sockets, a process opens files for the database, logs and modules.
const OTHER_FILES = 100

const options = read()
const chosen = (work: Compared | Part) => options.works.includes(work)
const stage = await openStage(options)
try {
  const machine = { generator: stage.generator, cores: cpus().length, node: process.version }
  console.log(`${machine.generator}, ${machine.cores} cores, Node ${machine.node}`)
  const figures: Record<string, unknown> = { machine }
  const works = compared.filter(chosen)
  const names = [...works.length > 0 ? ['compare'] : [], ...parts.filter(chosen)]
  const tell = async (name: string, measure: () => Promise<Report>) => {
    const report = await showElapsed(`Part ${names.indexOf(name) + 1} of ${names.length}, ${name}`, measure)
    print(report)
    figures[name] = report.figures
  }

  if (works.length > 0) await tell('compare', () => compare(stage, works))
  for (const part of parts.filter(chosen)) await tell(part, () => run[part](stage))
  if (options.json) await writeFile(options.json, JSON.stringify(figures, null, 2))
} finally {
  await stage.close()
}

// Shows on standard error for how long a part has been running, because some take minutes.
async function showElapsed<Result> (label: string, measure: () => Promise<Result>): Promise<Result> {
  const progress = showProgress(new Messages(process.stderr), label, (seconds) => `${seconds} s`)
  const since = performance.now()
  const timer = setInterval(() => progress.update(Math.round((performance.now() - since) / 1000)), 1000)
  try {
    return await measure()
  } finally {
    clearInterval(timer)
    progress.end()
  }
}

// Invalid options and limits of the machine are reported before anything is started.
function read (): Options {
  try {
    const options = readOptions(process.argv.slice(2))
    if (options.works.includes('fanout') || options.works.includes('comeback')) {
      requireOpenFiles(options.subscribers + OTHER_FILES)
    }
    if (options.works.includes('idle')) requireOpenFiles(options.idlers + OTHER_FILES)
    if (options.works.includes('overload')) requireOpenFiles(Math.max(...CONNECTIONS) + OTHER_FILES)
    return options
  } catch (error) {
    console.error((error as Error).message)
    process.exit(1)
  }
}
