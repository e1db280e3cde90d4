import { installationOf } from '../../db/uploads/uploads.ts'
import { closeBackends } from '../../plugins/uploads/open-backend.ts'
import { createMoving } from '../../plugins/uploads/moving.ts'
import { storages, storeNames } from '../../schema/options/stores.ts'
import { describeBytes } from '../backup/format.ts'
import { moveUploads } from '../move-uploads.ts'
import { requiredSettingsOf } from '../settings/stores.ts'
import { openStorages } from '../storage.ts'
import { showProgress } from '../terminal/progress.ts'
import { WrongArguments, type Command } from './command.ts'
import { confirm } from './confirm.ts'
import { withDatabase } from './with-database.ts'

export default {
  details: `  --to <${storages.join('|')}>  where to\n` +
    '  --yes             do not ask for confirmation\n\n' +
    'Nodes may run meanwhile, if all of them have been started with the settings of both. A file is removed from its old place\n' +
    'when its SHA-256 was verified at the new one. If the command is interrupted, repeat it.',
  json: '{ from, to, files: number, bytes: number, left: number, damagedIds: [string] }',
  options: { to: { type: 'string' }, yes: { type: 'boolean' } },

  async run ({ to: name, yes }, _, shell) {
    const target = storages.find((storage) => storage === name)
    if (!target) throw new WrongArguments(`--to must be ${storages.join(' or ')}`)
    return withDatabase(shell, async ({ db, options, settings }) => {
      const backends = await openStorages(settings)
      const to = backends.get(target)
      const [first, ...others] = [...backends.values()].filter((backend) => backend !== to)
      if (!to || !first) {
        const names = storeNames.map((store) => requiredSettingsOf(store).join(', ')).join(', or ')
        throw new Error(`The settings have only the folder: set ${names}, for all nodes as well.`)
      }
      const from = others.reduce(createMoving, first)
      try {
        if (!await to.isClaimed(await installationOf(db, options.schema))) {
          throw new Error(`No node has used ${to.root} yet: start all nodes with the settings of both first.`)
        }
        const isConfirmed = yes || await confirm(shell, `Have all nodes been started with the settings of ${from.root} and ${to.root}?`)
        if (!isConfirmed) return { text: 'Nothing was moved.', json: jsonOf(from.root, to.root) }
        const progress = showProgress(shell.messages, 'Moving', describeBytes)
        let done = 0
        try {
          const moved = await moveUploads({
            db,
            from,
            to,
            signal: new AbortController().signal,
            onFile (size) {
              done += size
              progress.update(done, 0)
            },
          })
          const { files, bytes, left, damagedIds } = moved
          const damaged = damagedIds.length === 0
            ? ''
            : ` The bytes of some uploads differ from their records, such as ${damagedIds.join(', ')}.`
          const rest = left === 0 ? '' : ` ${left} have stayed in ${from.root}: they have no record, or are damaged.`
          return {
            text: `${files} files, ${describeBytes(bytes)}, were moved to ${to.root}.${rest}${damaged}`,
            json: jsonOf(from.root, to.root, moved),
            isFailure: damagedIds.length > 0,
          }
        } finally {
          progress.end()
        }
      } finally {
        closeBackends(backends)
      }
    })
  },
} satisfies Command

const jsonOf = (from: string, to: string, moved = { files: 0, bytes: 0, left: 0, damagedIds: [] as string[] }) =>
  ({ from, to, ...moved })
