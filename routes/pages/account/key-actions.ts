import type { PageText } from '../../../schema/options/page-texts.ts'
import { sessionActions } from '../../../schema/options/policy.ts'
import type { Texts } from '../../../schema/translations/en.ts'
import { attributes, html, type Html } from '../html.ts'

// What actions of the policy are about, and what they do, in words. Those of a host are shown as they are.
const subjects: Readonly<Record<string, PageText>> = {
  users: 'ofUsers',
  sessions: 'sessionsTitle',
  passkeys: 'passkeysTitle',
  identities: 'identitiesTitle',
  'api-keys': 'keysTitle',
  posts: 'ofPosts',
  uploads: 'filesTitle',
  audit: 'ofAudit',
  deliveries: 'ofDeliveries',
  service: 'ofService',
}
const verbs: Readonly<Record<string, PageText>> = {
  list: 'mayList',
  'list-of-another': 'mayListOfOthers',
  read: 'mayRead',
  'read-email': 'mayReadEmail',
  'read-private': 'mayReadPrivate',
  filter: 'mayFilter',
  create: 'mayCreate',
  'create-for-another': 'mayCreateForOthers',
  update: 'mayChange',
  replace: 'mayChange',
  delete: 'fileDelete',
  share: 'mayShare',
  invite: 'mayInvite',
  disable: 'mayDisable',
  'grant-role': 'mayGrantRole',
  'verify-email': 'mayVerifyEmail',
  end: 'mayEnd',
  retry: 'sendAgain',
  discard: 'mayDiscard',
}

/** Returns the actions that an API key can have. */
export const keyActionsOf = (policy: Readonly<Record<string, unknown>>): string[] =>
  Object.keys(policy).filter((action) => !sessionActions.has(action)).sort()

/**
 * Returns a box for each action that an API key can have, by what they are about.
 * @param nameOf returns the name of the box of an action
 */
export function showKeyActions (
  actions: readonly string[], t: Texts, { nameOf = () => 'actions', chosen = [] }: {
    nameOf?: (action: string) => string
    chosen?: readonly string[]
  } = {}
): Html {
  const groups = Map.groupBy(actions, (action) => action.split(':', 1)[0]!)
  return html`${[...groups].sort(([one], [other]) => orderOf(one) - orderOf(other)).map(([subject, actions]) => {
    const title = Object.hasOwn(subjects, subject) ? t[subjects[subject]!] : subject
    return html`<fieldset><legend>${title}</legend>
${actions.map((action) => {
  const verb = action.slice(subject.length + 1)
  const label = Object.hasOwn(subjects, subject) && Object.hasOwn(verbs, verb) ? t[verbs[verb]!] : undefined
  return html`<label class="check"><input type="checkbox"${attributes({
    name: nameOf(action), value: action, checked: chosen.includes(action), autocomplete: 'off',
  })}
  data-words="${label ? `${title}: ${label}` : action}"> <span>${label ?? action}${label && html` <code class="muted">${action}</code>`}</span></label>\n`
})}</fieldset>\n`
  })}`
}

const order = Object.keys(subjects)
const orderOf = (subject: string): number => order.includes(subject) ? order.indexOf(subject) : order.length
