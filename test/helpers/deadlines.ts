import { multiplyNodeDeadlines, STOP_DEADLINES, type StopDeadlines } from '../../node/process/deadlines.ts'
import { DEADLINES, multiplyDeadlines } from '../../schema/options/deadlines.ts'

/**
 * How much longer than usual nodes and apps of tests wait, so that a busy machine makes a test slow, but does not fail
 * it.
 */
export const FACTOR = 10

/**
 * How long a test waits for what it expects: longer than a busy machine takes, and less than the limit of tap, which
 * would end the test without saying what it waited for.
 */
export const TEST_TIMEOUT_MS = 240_000

// What these end, a client keeps open on purpose.
const { socketClose, responseCutOff, drain } = DEADLINES

/**
 * The deadlines of apps in tests. A test of a deadline sets that one, such as `{ deadlines: { ...slow, idempotency: 100
 * } }`, and a test of outages has the defaults, `{ deadlines: {} }`.
 */
export const slow = { ...multiplyDeadlines(FACTOR), socketClose, responseCutOff, drain }

/**
 * The deadlines of parts of a node in the process of a test. A node in another process has them by `DEADLINE_FACTOR`.
 */
export const slowNode = multiplyNodeDeadlines(FACTOR)

/** How long a server in the process of a test waits for its clients when it stops. */
export const slowStop = Object.fromEntries(
  Object.entries(STOP_DEADLINES).map(([name, milliseconds]) => [name, FACTOR * milliseconds])
) as StopDeadlines
