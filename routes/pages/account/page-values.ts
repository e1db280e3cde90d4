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
  /** Whether there is one. */
  hasFieldError?: boolean
  /** What has happened. */
  notice?: string
  /** How it looks: as a success, or as a warning. */
  noticeClass?: string
  /** What the user has entered, and failures of fields of the host by name. */
  typed?: Readonly<Record<string, unknown>>
  hostErrors?: Readonly<Record<string, string>>
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
  /** Whether it is a page for that. */
  byMail?: boolean
  /** Whether the login begins with a mail: with asking for one, with its code, or with its link. */
  showsMail?: boolean
  showsMailCode?: boolean
  showsMailLink?: boolean
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
  /** Whether the service has passkeys for this page. */
  canUsePasskeys?: boolean
  /** Whether there are providers with which users sign in. */
  hasProviders?: boolean
  /** Whether a link to verify the address can be sent. */
  canVerify?: boolean
  /** The actions that an API key can have. */
  keyActions?: readonly string[]
  /** Whether the mount has uploads. */
  hasFiles?: boolean
  /** What roles in organisations may do, as JSON, and who may found one; undefined without the option. */
  organizationRoles?: string
  organizationFounders?: 'anyone' | 'admins'
  /** Whether the mount has posts. */
  hasPosts?: boolean
  /** Whether the mount has a console. */
  hasConsole?: boolean
}

/** The fields whose failures stand at them, with the names of the values. */
export const fieldErrors = { name: 'nameError', email: 'emailError', password: 'passwordError' } as const
