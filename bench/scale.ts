import { encodeCursor } from '../schema/http/cursor.ts'
import { idsFrom } from './data.ts'
import { measureInTurn } from './in-turn.ts'
import type { Work } from './load.ts'
import { round, verdict, type Report } from './report.ts'
import { login, type Server } from './servers.ts'
import type { Stage } from './stage.ts'

const FEW = 1000
const ROWS_PER_PAGE = 50
const FAR_PAGE = 10_000
// The far pages begin at this many rows, one row apart, so that few requests for the same page share a statement.
const CURSORS = 500
const AT_MOST = 1.2

interface Size { usher: Server, token: string, idsFile: string, cursorsFile: string }

/**
 * Measures whether a table of a million users is as fast as one of a thousand: by id, the first page, and a far page.
 */
export async function scale (stage: Stage): Promise<Report> {
  const { many, rounds, seconds, connections } = stage.options
  const farPage = Math.min(FAR_PAGE, Math.floor(many / ROWS_PER_PAGE / 2))
  const sizes: Size[] = []
  try {
    sizes.push(await open(stage, FEW, 2), await open(stage, many, farPage))
    const figures = []
    // With one connection, requests cannot share statements.
    for (const work of ['user', 'firstPage', 'page'] as const) {
      for (const clients of [connections, 1]) figures.push(await measure(stage, sizes, work, clients))
    }
    const names: Partial<Record<Work, string>> = {
      user: 'by id', firstPage: 'page 1', page: `page ${farPage} (of ${FEW}: page 2)`,
    }
    return {
      title: 'A million users against a thousand',
      how: `the same node and database, ${FEW} and ${many} users in a Postgres schema each; ${rounds} rounds of ${seconds} s in turn; requests/s`,
      columns: [
        'work', 'connections', `of ${FEW}`, 'p99 ms', `of ${many}`, 'p99 ms', 'failures', 'times slower', 'target',
      ],
      rows: figures.map(({ work, connections, few, many, failures, ratio }) => [
        names[work]!, connections, round(few.rate), round(few.p99, 1), round(many.rate), round(many.p99, 1), failures,
        round(ratio, 2), verdict(`≤ ${AT_MOST}`, ratio <= AT_MOST),
      ]),
      figures,
    }
  } finally {
    for (const { usher } of sizes) await usher.stop()
  }
}

// The cursor of a page is the last row of the previous one. The admin is the newest user.
async function open (stage: Stage, users: number, page: number): Promise<Size> {
  const schema = `usher_${users}`
  const idsFile = await stage.fill(schema, { users, posts: 0 })
  const ids = await idsFrom(stage.databaseUrl, schema, { offset: ROWS_PER_PAGE * (page - 1) - 1, limit: CURSORS })
  const cursorsFile = await stage.write(`${schema}_cursors`, ids.map(encodeCursor))
  const usher = await stage.start('usher', { schema })
  return { usher, token: await login(usher.url), idsFile, cursorsFile }
}

async function measure (stage: Stage, [small, large]: readonly Size[], work: Work, connections: number) {
  const load = ({ usher: { url }, token, idsFile, cursorsFile }: Size) =>
    ({ url, work, keysFile: work === 'page' ? cursorsFile : idsFile, token, connections })
  const { few, many } = await measureInTurn(stage, { few: load(small!), many: load(large!) })
  return { work, connections, few, many, failures: few.failures + many.failures, ratio: few.rate / many.rate }
}
