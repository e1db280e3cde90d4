/** What a page shows besides its texts. */
export interface PageValues {
  /** A failure of the form. */
  alert?: string
  /** A failure of the code of an app, or of a recovery code. */
  codeAlert?: string
  recoveryAlert?: string
  /** Failures of fields. */
  nameError?: string
  emailError?: string
  passwordError?: string
  /** Not empty if there is one. */
  hasFieldError?: string
  /** What has happened. */
  notice?: string
  /** How it looks: as a success, or as a warning. */
  noticeClass?: string
  /** What the user has entered. */
  typedName?: string
  typedEmail?: string
  /** Where the login leads. */
  returnTo?: string
  /** The pages for sign-up and login, with where to go afterwards. */
  signUpUrl?: string
  loginUrl?: string
  forgotUrl?: string
  /** The page itself, without what it has shown. */
  signUpPage?: string
  /** What the page says once a mail to log in is sent. */
  mailSentText?: string
  /** Not empty if users can log in by mail: the page for that, and where the form for the code is sent. */
  loginMailUrl?: string
  mailCodeUrl?: string
  /** Not empty on the pages for that. */
  byMail?: string
  /** Not empty if the login begins with a mail: with asking for one, with its code, or with its link. */
  showsMail?: string
  showsMailCode?: string
  showsMailLink?: string
  /** What the code of a mail belongs to. */
  loginId?: string
  /** A failure of the request for a mail, or of its code. */
  mailAlert?: string
  mailCodeAlert?: string
  /** The query with where the login leads; empty if it leads nowhere in particular. */
  returnQuery?: string
  /** Where the form for the second factor is sent. */
  secondFactorUrl?: string
  /** To which login the second factor belongs, once the first one was right. */
  challenge?: string
  /** The second factors that the user has, separated by spaces. */
  methods?: string
  /** Not empty if the service has passkeys for this page. */
  canUsePasskeys?: string
  /** Not empty if there are providers with which users sign in. */
  hasProviders?: string
  /** Not empty if a link to verify the address can be sent. */
  canVerify?: string
  /** The actions that an API key can have, separated by spaces. */
  keyActions?: string
  /** Not empty if the mount has uploads. */
  hasFiles?: string
  /** Not empty if the mount has a console. */
  hasConsole?: string
}

/** The names of these values, as placeholders of templates. */
export const valueNames: readonly (keyof PageValues)[] = [
  'alert', 'codeAlert', 'recoveryAlert', 'notice', 'typedName', 'typedEmail', 'returnTo', 'signUpUrl', 'loginUrl',
  'secondFactorUrl', 'returnQuery', 'challenge', 'methods', 'canUsePasskeys', 'hasProviders', 'canVerify',
  'loginMailUrl', 'mailCodeUrl', 'byMail', 'showsMail', 'showsMailCode', 'showsMailLink', 'loginId', 'mailAlert',
  'mailCodeAlert', 'keyActions', 'hasFiles', 'hasConsole', 'nameError', 'emailError',
  'passwordError', 'hasFieldError', 'noticeClass', 'forgotUrl', 'signUpPage', 'mailSentText',
]

/** The fields whose failures stand at them, with the names of the values. */
export const fieldErrors = { name: 'nameError', email: 'emailError', password: 'passwordError' } as const
