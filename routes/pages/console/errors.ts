import { REJECTED } from '../../../schema/options/page-texts.ts'
import { LastOwner } from '../../../schema/organizations/organizations.ts'
import { explain } from '../account/render.ts'
import type { ConsoleText, Words } from './words.ts'

type Failure = Error & { code?: string, errors?: readonly string[] }

// What the console says in other words than the pages of users, whose reader is the one who is changed.
const texts: Readonly<Record<string, ConsoleText>> = {
  NOT_FOUND: 'notFoundText',
  USER_NOT_FOUND: 'notFoundText',
  POST_NOT_FOUND: 'notFoundText',
  UPLOAD_NOT_FOUND: 'notFoundText',
  SESSION_NOT_FOUND: 'notFoundText',
  API_KEY_NOT_FOUND: 'notFoundText',
  PASSKEY_NOT_FOUND: 'notFoundText',
  IDENTITY_NOT_FOUND: 'notFoundText',
  DELIVERY_NOT_FOUND: 'notFoundText',
  ORGANIZATION_NOT_FOUND: 'notFoundText',
  MEMBERSHIP_NOT_FOUND: 'notFoundText',
  INVITATION_NOT_FOUND: 'notFoundText',
  PRECONDITION_FAILED: 'changedText',
  LAST_ADMIN: 'lastAdmin',
  USER_IN_USE: 'userInUse',
  USER_DISABLED: 'orgUserDisabled',
  SLUG_TAKEN: 'orgSlugTaken',
  ALREADY_MEMBER: 'orgMemberExists',
  ORGANIZATION_IN_USE: 'orgInUse',
  TOO_MANY_MEMBERS: 'orgMembersFull',
  TOO_MANY_ORGANIZATIONS: 'orgOrganizationsFull',
  TOO_MANY_INVITATIONS: 'orgInvitationsFull',
}

/** Returns what a page says about a failure. What a hook of the host says is shown as it is. */
export function explainError (words: Words, error: Failure): string {
  const { t, language } = words
  if (error instanceof LastOwner) return words.format('orgLastOwner', { names: error.organizations })
  const { code = '' } = error
  return code !== REJECTED && Object.hasOwn(texts, code) ? t[texts[code]!] : explain(error, t, language)
}

const titles: Readonly<Record<number, ConsoleText>> = {
  403: 'notPermitted',
  404: 'notFound',
  412: 'changedTitle',
  429: 'tooManyTitle',
  503: 'unavailableTitle',
}

/** Returns the heading of a page that says what went wrong. */
export const titleOfFailure = ({ t }: Words, { statusCode = 500 }: { statusCode?: number | undefined }): string =>
  t[titles[statusCode] ?? (statusCode >= 500 ? 'failedTitle' : 'notPossible')]
