import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { CONFIG_NAMES } from '../config/config-file.ts'
import { createTemplate } from '../config/template.ts'
import { PROGRAM } from '../../schema/runtime/program.ts'
import type { Command } from './command.ts'

export default {
  details: 'It asks nothing, and changes no file that exists.',
  json: '{ file }',
  options: {},

  async run (_, __, shell) {
    const existing = CONFIG_NAMES.find((name) => existsSync(shell.resolve(name)))
    const file = shell.resolve(CONFIG_NAMES[0])
    try {
      if (existing !== undefined) throw Object.assign(new Error(), { code: 'EEXIST' })
      await writeFile(file, createTemplate(), { flag: 'wx' })
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new Error(code === 'EEXIST'
        ? `${shell.resolve(existing ?? file)} exists, and is not changed.`
        : `${file} cannot be written (${code}): check the permissions of the folder.`, { cause: error })
    }
    const text = [
      `${file} was written. As it is, it changes nothing. Next:`,
      '',
      '  1. Remove the // in front of the examples that you need.',
      `  2. Run "${PROGRAM.replace(/ --$/, '')}" to start the node. A mistake is reported with its file, line and option.`,
      `  3. Run "${PROGRAM} config" to see every value, and where it comes from.`,
      '',
      'docs/config.md explains the file, and docs/options.md has all options.',
    ].join('\n')
    return { text, json: { file } }
  },
} satisfies Command
