import { readFile } from 'node:fs/promises'
import { measureInTurn } from './in-turn.ts'
import { round, verdict, type Report } from './report.ts'
import type { Stage } from './stage.ts'

const AT_LEAST = 1
const USERS = 1000
const TAGS_AT_ONCE = 50

// Without a tag; with the current tag, so that the response is 304; with the tag of a former version.
const kinds = ['200', '304', '200 after a change'] as const
type Kind = typeof kinds[number]

/**
 * Measures requests for users by clients that have the current version already, compared with clients that have none.
 */
export async function revalidate (stage: Stage): Promise<Report> {
  const { rounds, seconds, connections } = stage.options
  const idsFile = await stage.users()
  const server = await stage.start('usher')
  try {
    const tags = await tagsOf(server.url, (await readFile(idsFile, 'utf8')).split('\n').slice(0, USERS))
    const keysFiles: Record<Kind, string> = {
      200: await stage.write('ids', tags.map(([id]) => id)),
      304: await stage.write('tags', tags.map((pair) => pair.join(' '))),
      '200 after a change': await stage.write(
        'former-tags', tags.map(([id, tag]) => `${id} ${tag.replace('"', '"0')}`)
      ),
    }
    const loads = kinds.map((kind) => [kind, {
      url: server.url,
      work: kind === '200' ? 'user' as const : 'revalidated' as const,
      keysFile: keysFiles[kind],
      token: '',
    }] as const)
    const measured = await measureInTurn(stage, Object.fromEntries(loads))
    const figures =
      kinds.map((kind) => ({ kind, ...measured[kind]!, againstRead: measured[kind]!.rate / measured['200']!.rate }))
    return {
      title: 'Revalidating users by id',
      how: `${connections} connections, ${rounds} rounds of ${seconds} s in turn, ${USERS} users`,
      columns: ['response', 'requests/s', 'p99 ms', 'failures', 'of the 200', 'target'],
      rows: figures.map(({ kind, rate, p99, failures, againstRead }) => [
        kind, round(rate), round(p99, 1), failures, round(againstRead, 2),
        kind === '304' ? verdict(`≥ ${AT_LEAST}`, againstRead >= AT_LEAST) : '',
      ]),
      figures,
    }
  } finally {
    await server.stop()
  }
}

async function tagsOf (url: string, ids: string[]): Promise<[id: string, tag: string][]> {
  const tags: [string, string][] = []
  for (let from = 0; from < ids.length; from += TAGS_AT_ONCE) {
    tags.push(...await Promise.all(ids.slice(from, from + TAGS_AT_ONCE).map(async (id): Promise<[string, string]> => {
      const path = `${url}/api/users/${id}`
      const etag = (await fetch(path)).headers.get('etag')!
      const { status } = await fetch(path, { headers: { 'if-none-match': etag } })
      if (status !== 304) throw new Error(`${path} has the tag ${etag} and responds with ${status} to it`)
      return [id, etag]
    })))
  }
  return tags
}
