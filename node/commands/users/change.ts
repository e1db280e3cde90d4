import type { UserRow } from '../../../db/tables/index.ts'
import { listWays } from '../../../db/sign-in/ways.ts'
import type { Changes } from '../../../db/users/update-user.ts'
import type { Shell } from '../../terminal/shell.ts'
import type { Command, Values } from '../command.ts'
import { confirm } from '../confirm.ts'
import { withService } from '../with-service.ts'
import { changeMany, FILE_JSON, fileHelp, fileOptions, type ManyChanges } from './many.ts'
import { findUser, showUser, USER } from './shown.ts'
import { describeWays, showWay } from './shown-ways.ts'

export const promote = changing(
  'Sessions of the user end, and links in mails to the user are void. Asks for\n' +
    'confirmation if the address of the user is not verified: everybody can set their own address to one that is not theirs.\n\n' +
    '  --yes  do not ask for confirmation', { role: 'admin' }, 'is an admin',
  { options: { yes: { type: 'boolean' } }, mayProceed: confirmUnverified }
)

export const demote = changing(
  'Ends the sessions of the user. The last admin cannot be demoted.', { role: 'user' }, 'has the role user'
)

export const disable = changing(
  'The user cannot log in. All sessions end at once on every node, and links in mails\nto the user are void. ' +
    'The data of the user stay. The last admin cannot be disabled.', { disabled: true }, 'is disabled',
  {
    many: { task: 'users disable', label: 'Disabling', done: 'disabled', skipped: 'disabled before', isDone: ({ disabled }) => disabled },
  }
)

export const enable = changing('', { disabled: false }, 'is enabled', {
  many: { task: 'users enable', label: 'Enabling', done: 'enabled', skipped: 'not disabled', isDone: ({ disabled }) => !disabled },
})

/**
 * Returns whether a user may get a role, by default that of an admin: it has to be the person whom the operator knows
 * by this address.
 */
export async function confirmUnverified (
  { email, emailVerified, role }: UserRow, { yes }: Values, shell: Shell, given = 'admin'
): Promise<boolean> {
  if (emailVerified || role === given || yes === true) return true
  const reason = `The address ${email} is not verified, so the user may be somebody else who claims it`
  const question = given === 'admin' ? 'Make the user an admin?' : `Give the user the role ${given}?`
  return confirm(shell, `${reason}.\n${question}`, reason)
}

// Returns whether a change lets the user do more than before. Then the command lists what can log in.
function admits ({ role, disabled }: Changes): boolean {
  return role === 'admin' || disabled === false
}

// Returns a command that changes a user like PATCH /api/users/{id}.
function changing (
  effect: string, changes: Changes, result: string,
  { options = {}, mayProceed, many }: {
    options?: Command['options']
    mayProceed?: (user: UserRow, values: Values, shell: Shell) => Promise<boolean>
    many?: Pick<ManyChanges, 'task' | 'label' | 'done' | 'skipped'> & { isDone: (user: UserRow) => boolean }
  } = {}
): Command {
  const about = ['USER is the id or the email address of the user.', effect].filter(Boolean).join(' ')
  const json = `{ user: ${USER}${admits(changes) ? ', ways: { kind, id, name, addedAt }[]' : ''} }`
  const changeOne: Command['run'] = (values, [given = ''], shell) => withService(shell, async ({ app, db, caller }) => {
    const found = await findUser(db, given)
    if (await mayProceed?.(found, values, shell) === false) {
      return { text: `${found.email} was not changed.`, json: { user: showUser(found) } }
    }
    // The answer is about the user as shown, who may have taken another address since.
    const user = await app.usherAccounts.update(caller, found.id, changes, mayProceed && [found.rowVersion])
    const ways = admits(changes) ? await listWays(db, user.id) : []
    return {
      text: [`${user.email} ${result}.`, ...ways.length > 0 ? [describeWays(ways)] : []].join('\n'),
      json: { user: showUser(user), ...admits(changes) && { ways: ways.map(showWay) } },
    }
  })
  if (!many) return { details: about, arguments: ['USER'], json, options, run: changeOne }
  return {
    details: `${about}\n\n${fileHelp(19)}`,
    arguments: ['USER'],
    insteadOfArguments: ['file'],
    json: `${json}, with --file ${FILE_JSON}`,
    options: { ...options, ...fileOptions },
    run: (values, args, shell) => values['file'] === undefined
      ? changeOne(values, args, shell)
      : changeMany(values, args, shell, {
        ...many,
        async change ({ app, caller }, user) {
          if (many.isDone(user)) return false
          await app.usherAccounts.update(caller, user.id, changes)
          return true
        },
      }),
  }
}
