import type { UserRow } from '../../../db/tables/index.ts'
import { listWays } from '../../../db/sign-in/ways.ts'
import { listUsers, placeOf, type UserPlace } from '../../../db/users/list-users.ts'
import type { Changes } from '../../../db/users/update-user.ts'
import { noFields } from '../../../schema/users/user-fields.ts'
import { userInputs } from '../../../schema/users/user-inputs.ts'
import type { Shell } from '../../terminal/shell.ts'
import { WrongArguments, type Command, type Output } from '../command.ts'
import { confirm } from '../confirm.ts'
import { readRolesOf } from '../roles.ts'
import { withService, type ServiceContext } from '../with-service.ts'
import { confirmUnverified } from './change.ts'
import { changeMany, FILE_JSON, fileHelp, fileOptions } from './many.ts'
import { findUser, showUser, USER } from './shown.ts'
import { describeWays, showWay } from './shown-ways.ts'

const PAGE = 100

export default {
  details: 'USER is the id or the email address of the user. Sessions and API keys of whoever gets another role end, and with\n' +
    'another role than user, links in mails are void. Nodes may run meanwhile, or not be able to start because users have\n' +
    'a role that the option roles does not have any more. The last admin keeps the role.\n\n' +
    '  --to <role>        the new role: admin, user or one of the option roles, required\n' +
    '  --from <role>      all users of this role in place of USER, also one that the option roles does not have. Whoever\n' +
    '                     cannot be changed is listed. If it is interrupted, run it again\n' +
    `${fileHelp(19)}\n` +
    '  --yes              do not ask for confirmation',
  arguments: ['USER'],
  insteadOfArguments: ['file', 'from'],
  json: `{ user: ${USER}, ways: { kind, id, name, addedAt }[] }, with --file ${FILE_JSON}, with --from { from, to, changed: number, rejected: [{ id, reason }] }`,
  options: { to: { type: 'string' }, from: { type: 'string' }, yes: { type: 'boolean' }, ...fileOptions },

  async run (values, args, shell) {
    const { to, from, file, yes } = values
    if (to === undefined) throw new WrongArguments('--to is required.')
    if (from !== undefined && (file !== undefined || args.length > 0)) {
      throw new WrongArguments('Only one of USER, --file and --from is possible.')
    }
    const roles = await readRolesOf(shell)
    const changes: Changes = userInputs({ userFields: noFields, roles }).patch.parse({ role: to })
    // Whoever gets rights has to be known, see `confirmUnverified`.
    const mayBegin = async (users: string) => to === 'user' || yes === true ||
      confirm(shell, `Give ${users} the role ${to}?`, 'Users whose address is not verified may be somebody else who claims it')
    if (from !== undefined) return moveAll(String(from), changes, shell, mayBegin)
    if (file === undefined) return changeOne(args[0] ?? '', changes, shell, (user) => confirmUnverified(user, values, shell, String(to)))
    return changeMany(values, args, shell, {
      task: `users set-role --to ${to}`,
      label: 'Changing',
      done: 'changed',
      skipped: `of the role ${to} before`,
      mayBegin: () => mayBegin(`all users in ${file}`),
      async change ({ app, caller }, user) {
        if (user.role === to) return false
        await app.usherAccounts.update(caller, user.id, changes)
        return true
      },
    })
  },
} satisfies Command

async function changeOne (
  given: string, changes: Changes, shell: Shell, mayProceed: (user: UserRow) => Promise<boolean>
): Promise<Output> {
  return withService(shell, async ({ app, db, caller }) => {
    const found = await findUser(db, given)
    if (changes.role !== 'user' && !await mayProceed(found)) {
      return { text: `${found.email} was not changed.`, json: { user: showUser(found), ways: [] } }
    }
    // The answer is about the user as shown, who may have taken another address since.
    const user = await app.usherAccounts.update(caller, found.id, changes, [found.rowVersion])
    const ways = changes.role === 'user' ? [] : await listWays(db, user.id)
    return {
      text: [`${user.email} has the role ${user.role}.`, ...ways.length > 0 ? [describeWays(ways)] : []].join('\n'),
      json: { user: showUser(user), ways: ways.map(showWay) },
    }
  })
}

interface Moved { changed: number, rejected: { id: string, reason: string }[] }

// Whoever was moved has another role, so a run after an interruption finds the rest.
async function moveAll (
  from: string, changes: Changes, shell: Shell, mayBegin: (users: string) => Promise<boolean>
): Promise<Output> {
  const mayMove = await mayBegin(`all users of the role ${from}`)
  const { changed, rejected } =
    mayMove ? await withService(shell, (context) => move(context, from, changes)) : { changed: 0, rejected: [] }
  return {
    text: [
      `${changed} ${changed === 1 ? 'user was' : 'users were'} moved from ${from} to ${changes.role}.`,
      ...rejected.map(({ id, reason }) => `${id} was not moved: ${reason}`),
    ].join('\n'),
    json: { from, to: changes.role, changed, rejected },
    isFailure: rejected.length > 0,
  }
}

async function move ({ app, db, caller }: ServiceContext, role: string, changes: Changes): Promise<Moved> {
  const moved: Moved = { changed: 0, rejected: [] }
  if (role === changes.role) return moved
  let after: UserPlace | undefined
  while (true) {
    const { rows } = await listUsers(db, { role, sort: 'createdAt', limit: PAGE, after })
    for (const { id } of rows) {
      try {
        await app.usherAccounts.update(caller, id, changes)
        moved.changed++
      } catch (error) {
        const { statusCode = 500, message } = error as { statusCode?: number, message: string }
        if (statusCode >= 500 || statusCode === 429) throw error
        moved.rejected.push({ id, reason: message })
      }
    }
    if (rows.length < PAGE) return moved
    after = placeOf(rows.at(-1)!)
  }
}
