import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Output, Values } from '../../node/commands/command.ts'
import { commands } from '../../node/commands/index.ts'
import type { TestUsher } from './app.ts'
import { createShell } from './command.ts'
import { openConnection } from './connection.ts'
import { testDatabaseUrl } from './database.ts'
import { openSql } from './sql.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** The secret of the apps and commands of tests of imports. */
export const SECRET = 'a secret of many words'

/** Returns what runs commands that import and export files, on the database of an app. */
export async function importsOf (t: Test, usher: TestUsher, settings: Record<string, string> = {}) {
  const folder = temporaryFolder()
  const env = { ...process.env, DATABASE_URL: await testDatabaseUrl(), SECRET, ...settings }
  return {
    usher,
    folder,
    env,
    sql: openSql(t, usher),

    /** Opens the database as commands do. */
    async openDatabase () {
      const { db, measureClock } = await openConnection(t, { schema: usher.options.schema! })
      await measureClock()
      return db
    },

    /** Writes a file of lines. Those that are objects are written as JSON. */
    write (name: string, lines: readonly (object | string)[]): string {
      const path = join(folder, name)
      writeFileSync(path, lines.map((line) => typeof line === 'string' ? line : JSON.stringify(line)).join('\n'))
      return path
    },

    /** Runs a command, and returns what it prints with --json. */
    async run (name: 'users import' | 'users export' | 'organizations import', file: string, values: Values = {}) {
      const { default: command } = await commands[name]!.load()
      const output = await command.run(
        { schema: usher.options.schema!, ...values }, [file], createShell(env, folder)
      ) as Output
      return { text: output.text, isFailure: output.isFailure, ...output.json as any }
    },
  }
}

/** Returns the lines of a file that are not blank, each as what its JSON has. */
export const linesOf = (path: string) =>
  readFileSync(path, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line))
