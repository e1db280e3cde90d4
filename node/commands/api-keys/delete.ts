import { findApiKeyOwner } from '../../../db/api-keys/api-keys.ts'
import type { Command } from '../command.ts'
import { withService } from '../with-service.ts'

export default {
  details: 'ID is that of the list: api-keys list. The user gets a mail, if mails can be sent.',
  arguments: ['ID'],
  json: '{ id, deleted: boolean }',
  options: {},

  run: (_, [given = ''], shell) => withService(shell, async ({ app, db, caller }) => {
    const id = given.toLowerCase()
    const userId = await findApiKeyOwner(db, id)
    if (userId === undefined) throw new Error(`There is no API key ${given}.`)
    await app.usherAuth.apiKeys.delete(caller, userId, id)
    return { text: `The API key ${id} was deleted.`, json: { id, deleted: true } }
  }),
} satisfies Command
