import { readdir, readFile } from 'node:fs/promises'
import { constants, getPriority, setPriority } from 'node:os'
import type { FastifyBaseLogger } from 'fastify'

const THREADS = '/proc/self/task'
// The name of the threads in which V8 collects garbage and compiles beside the main thread.
const HELPER = 'V8Worker'
// How much higher than the main thread's their nice value is, which means a lower priority. Beside a busy main thread
// on the same core, they get a quarter of its time.
const NICE = 5

/**
 * Lowers the priority of V8's helper threads. Marking a heap of 50 MiB keeps four of them busy for a tenth of a second.
 * With the same priority as the main thread and PostgreSQL, they would take most of two cores, and requests would wait.
 * This works on Linux, which lists the threads of a process and has a priority for each, and with Node.js 24, which
 * names them.
 */
export async function lowerHelperThreads (log: FastifyBaseLogger): Promise<void> {
  const [outcome] = await Promise.allSettled([lower()])
  log.debug(outcome, 'The priority of the helper threads was lowered')
}

// Returns the number of helper threads.
async function lower (): Promise<number> {
  const threads = await readdir(THREADS)
  const names = await Promise.all(threads.map((thread) => readFile(`${THREADS}/${thread}/comm`, 'utf8')))
  const helpers = threads.filter((_, index) => names[index]!.trim() === HELPER)
  // The node itself may have been started with a low priority.
  const priority = Math.min(getPriority() + NICE, constants.priority.PRIORITY_LOW)
  for (const helper of helpers) setPriority(Number(helper), priority)
  return helpers.length
}
