import { REJECTED } from '../../../schema/options/page-texts.ts'
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
  DELIVERY_NOT_FOUND: 'notFoundText',
  PRECONDITION_FAILED: 'changedText',
  LAST_ADMIN: 'lastAdmin',
  USER_IN_USE: 'userInUse',
}

/** Returns what a page says about a failure. What a hook of the host says is shown as it is. */
export function explainError ({ t, language }: Words, error: Failure): string {
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
