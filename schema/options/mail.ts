import type { CredentialKind } from '../sign-in/ways.ts'

/** A mail that Usher wants to be sent. */
export interface Mail extends MailContent { to: string }

/** What a mail says: as text, and as HTML if there is a template for it. */
export interface MailContent {
  subject: string
  text: string
  html?: string | undefined
}

/** The values of mails about an admission that list what can log in, by its kind. */
export const admittedWays = {
  passkey: 'passkeys', totp: 'app', identity: 'identities', 'api-key': 'keys',
} as const satisfies Readonly<Record<CredentialKind, string>>

export type AdmittedWays = { [Kind in CredentialKind as typeof admittedWays[Kind]]: string }

/** What is known to the templates about a user who can do more than before. */
interface AdmittedValues extends CommonValues, AdmittedWays {
  page: string
  /** `yes` if anything but a password can log in. */
  ways: string
}

/** What is known to the template of every mail. */
interface CommonValues {
  productName: string
  /** The color of buttons, and that of their text. */
  color: string
  textColor: string
  /** The language of the recipient (BCP 47), and its direction: `ltr` or `rtl`. */
  language: string
  direction: string
}

/**
 * The values for the template of each mail. Links are absolute URLs. Durations are texts in the language, such as
 * "30 minutes".
 */
export interface MailValues {
  /** A link to set another password. */
  'password-reset': CommonValues & { link: string, duration: string }
  /** The link with which a user, whose account an admin has created, sets the first password. */
  invitation: CommonValues & { link: string, duration: string }
  /** An invitation to an organisation, with its name. */
  'organization-invitation': CommonValues & { link: string, duration: string, organization: string }
  /**
   * The password was set or changed. `page` is where links to set a password lead. `undoLink` is empty if there is
   * none.
   */
  'password-changed': CommonValues & { page: string, undoLink: string, duration: string }
  /** The link that creates the account. */
  'sign-up': CommonValues & { link: string, duration: string }
  /** Somebody signed up with an address that has an account. */
  'sign-up-taken': CommonValues & { loginLink: string, forgotLink: string }
  /** A link that shows that the address belongs to the user. */
  'verify-email': CommonValues & { link: string, duration: string }
  /**
   * Goes to the previous address. `undoLink` restores it; it is empty if there is none, as for a change by an admin.
   */
  'email-changed': CommonValues & { undoLink: string, duration: string }
  /** A passkey was added. `undoLink` removes it; it is empty if there is none. */
  'passkey-added': CommonValues & { undoLink: string, duration: string }
  'api-key-added': CommonValues & { undoLink: string, duration: string }
  'api-key-removed': CommonValues & { page: string }
  /** A passkey was removed. `page` is where links to set a password lead. */
  'passkey-removed': CommonValues & { page: string }
  /** An authenticator app was added. `undoLink` removes it; it is empty if there is none. */
  'totp-added': CommonValues & { page: string, undoLink: string, duration: string }
  /** The authenticator app was removed. */
  'totp-removed': CommonValues & { page: string }
  /**
   * An identity at a provider was linked; `provider` is its name, which the options say. `undoLink` removes it; it is
   * empty if there is none.
   */
  'identity-added': CommonValues & { provider: string, undoLink: string, duration: string }
  /** An identity was removed. */
  'identity-removed': CommonValues & { page: string }
  /** Recovery codes were created. `undoLink` restores the former ones; it is empty if there is none. */
  'recovery-codes-created': CommonValues & { undoLink: string, duration: string }
  /** A recovery code was used. */
  'recovery-code-used': CommonValues & { page: string }
  /** A link, and a code for the browser that has asked for it, to log in. */
  login: CommonValues & { link: string, code: string, duration: string }
  /** A code with which the user of a session confirms to be there. */
  'step-up': CommonValues & { code: string, duration: string }
  /**
   * What was set up for the account before its address was confirmed is removed, such as the password. `page` is where
   * a link to set a password is requested.
   */
  'ways-removed': CommonValues & { page: string }
  /**
   * The user has become an admin. The values say what can log in, each a list of days when something was added, or
   * empty: `passkeys`, `app`, `identities` (with their providers) and `keys`. `page` is where a new password is set.
   */
  'account-promoted': AdmittedValues
  /** The user has got a role of the host, which is the value `role`. The others are those of `account-promoted`. */
  'role-granted': AdmittedValues & { role: string }
  /** The user is not disabled any more. The values are those of `account-promoted`. */
  'account-enabled': AdmittedValues
  /** The user has deleted the account. It goes to the address that the account had. */
  'account-deleted': CommonValues
}

export type MailName = keyof MailValues

/** The names of the values that every mail has. */
export const commonMailValues = ['productName', 'color', 'textColor', 'language', 'direction'] as const
const admittedValues = [...commonMailValues, 'page', 'ways', ...Object.values(admittedWays)] as const

/** The names of the values of each mail. */
export const mailValues: { readonly [Name in MailName]: readonly (keyof MailValues[Name])[] } = {
  'password-reset': [...commonMailValues, 'link', 'duration'],
  invitation: [...commonMailValues, 'link', 'duration'],
  'organization-invitation': [...commonMailValues, 'link', 'duration', 'organization'],
  'password-changed': [...commonMailValues, 'page', 'undoLink', 'duration'],
  'sign-up': [...commonMailValues, 'link', 'duration'],
  'sign-up-taken': [...commonMailValues, 'loginLink', 'forgotLink'],
  'verify-email': [...commonMailValues, 'link', 'duration'],
  'email-changed': [...commonMailValues, 'undoLink', 'duration'],
  'passkey-added': [...commonMailValues, 'undoLink', 'duration'],
  'api-key-added': [...commonMailValues, 'undoLink', 'duration'],
  'api-key-removed': [...commonMailValues, 'page'],
  'passkey-removed': [...commonMailValues, 'page'],
  'totp-added': [...commonMailValues, 'page', 'undoLink', 'duration'],
  'totp-removed': [...commonMailValues, 'page'],
  'identity-added': [...commonMailValues, 'provider', 'undoLink', 'duration'],
  'identity-removed': [...commonMailValues, 'page'],
  'recovery-codes-created': [...commonMailValues, 'undoLink', 'duration'],
  'recovery-code-used': [...commonMailValues, 'page'],
  login: [...commonMailValues, 'link', 'code', 'duration'],
  'step-up': [...commonMailValues, 'code', 'duration'],
  'ways-removed': [...commonMailValues, 'page'],
  'account-promoted': admittedValues,
  'role-granted': [...admittedValues, 'role'],
  'account-enabled': admittedValues,
  'account-deleted': commonMailValues,
}

export const mailNames = Object.keys(mailValues) as MailName[]

/** Returns the content of a mail, or undefined for that of Usher's own template. */
export type MailTemplates =
  <Name extends MailName>(name: Name, values: Readonly<MailValues[Name]>) => MailContent | undefined
