import type { Sql } from 'postgres'

/** Pauses some of the PostgreSQL processes that serve nodes until `pass` resolves. */
export async function stopBackends (sql: Sql, count: number, pass: () => Promise<void>): Promise<void> {
  const rows = await sql<{
    pid: number
  }[]>`select pid from pg_stat_activity where application_name = 'usher' order by random() limit ${count}`
  signal(rows, 'SIGSTOP')
  await pass()
  signal(rows, 'SIGCONT')
}

function signal (rows: readonly { pid: number }[], name: NodeJS.Signals): void {
  for (const { pid } of rows) {
    try {
      process.kill(pid, name)
    } catch {
      // The process has ended since it was listed.
    }
  }
}
