import { findApiKeyOwner } from '../../../db/sign-in/api-keys.ts'
import type { Command } from '../command.ts'
import { withService } from '../with-service.ts'

export default {
  details: 'ID is that of the list: api-keys list. The user gets a mail, if mails can be sent.\n\n' +
    '  --revoke-links  also revoke the links to uploads that were created with it',
  arguments: ['ID'],
  json: '{ id, deleted: boolean }',
  options: { 'revoke-links': { type: 'boolean' } },

  run: ({ 'revoke-links': revokesLinks }, [given = ''], shell) => withService(shell, async ({ app, db, caller }) => {
    const id = given.toLowerCase()
    const userId = await findApiKeyOwner(db, id)
    if (userId === undefined) throw new Error(`There is no API key ${given}.`)
    await app.usherSignIn.apiKeys.delete(caller, userId, id, { revokesLinks: revokesLinks === true })
    return { text: `The API key ${id} was deleted.`, json: { id, deleted: true } }
  }),
} satisfies Command
