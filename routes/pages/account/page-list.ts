import type { Options } from '../../../schema/options/options.ts'
import type { PageText } from '../../../schema/options/page-texts.ts'
import { InvalidChallenge, SecondFactorRequired } from '../../../schema/sign-in/second-factor.ts'
import { confirmsSignUps } from '../../mail-links/sign-ups.ts'
import type { FormOperation, FormOperations } from './forms.ts'
import type { PageValues } from './page-values.ts'
import { listAccountPages, type AccountPath } from './templates/account/frame.ts'
import { showData } from './templates/account/data.ts'
import { showFiles } from './templates/account/files.ts'
import { showKeys } from './templates/account/keys.ts'
import { showOrganizations } from './templates/account/organizations.ts'
import { showProfile } from './templates/account/profile.ts'
import { showSecurity } from './templates/account/security.ts'
import { showSessions } from './templates/account/sessions.ts'
import { showConfirmSignUp } from './templates/confirm-sign-up.ts'
import { showForgotPassword } from './templates/forgot-password.ts'
import { showJoin } from './templates/join.ts'
import { showLogin } from './templates/login.ts'
import { showSetPassword } from './templates/set-password.ts'
import { showSignUp } from './templates/sign-up.ts'
import { showUndo } from './templates/undo.ts'
import { showVerifyEmail } from './templates/verify-email.ts'
import type { MailLink } from './templates/mail-link.ts'
import type { Template } from './templates/view.ts'

/** Why the form of a page has failed. */
export interface FormFailure {
  error: Error
  /** What the user reads about it. */
  text: string
  /** The fields. Nothing about them is known if they could not be read. */
  body: Readonly<Record<string, unknown>>
}

/** A page, with the operation that its form runs if the browser runs no scripts. */
export interface Page {
  /** The path below the prefix. */
  path: string
  template: Template
  title: PageText
  /** What its heading says instead, with the name of the product. */
  heading?: PageText
  /** The script, in the folder of assets. */
  script: string
  /** Whether the page shows personal data, so that no cache may keep it. */
  isPersonal?: boolean
  /** Whether it has cards of its own, rather than being one. */
  isWide?: boolean
  /** What the page says if its address has one of these parameters. */
  notices?: Readonly<Record<string, PageText>>
  /** What it shows besides what all pages show. */
  values?: PageValues
  /** Where its script leads after success, relative to the page, if it has no form that says so. */
  next?: string
  /** Whether it sends a mail, so that the browser keeps where the user wants to go until its link is opened. */
  sendsMail?: boolean
  /** Whether a mail links to it with a token. Pages with `mailLink` need not say so. */
  takesToken?: boolean
  /** What is around its template, which is then the content of a form, if a mail links to the page with a token. */
  mailLink?: MailLink
  form?: {
    operation: FormOperation
    /** Where the browser goes after success, relative to the page. */
    next: string
    /** Whether it goes to the address in the parameter `returnTo` instead, if that is allowed. */
    returns?: boolean
    /** Whether the page after success has that parameter, too. */
    keepsReturn?: boolean
    /** Returns what the page shows after success, if the browser does not go elsewhere. */
    onSuccess?: (result: unknown) => PageValues
    /** Whether the page asks for the second factor of a login that has begun at a provider. */
    waitsForChallenge?: boolean
    /** Whether the page says why a login at a provider has failed, which its address names. */
    explainsErrors?: boolean
    /** Returns what the page shows of a failure; by default its texts, at the fields that they are about. */
    explain?: (failure: FormFailure) => PageValues | undefined
  }
}

const ofAccount: Readonly<Record<AccountPath, Pick<Page, 'template' | 'script'>>> = {
  '/account': { template: showProfile, script: 'profile.js' },
  '/account/security': { template: showSecurity, script: 'security.js' },
  '/account/sessions': { template: showSessions, script: 'sessions.js' },
  '/account/keys': { template: showKeys, script: 'keys.js' },
  '/account/organizations': { template: showOrganizations, script: 'organizations.js' },
  '/account/files': { template: showFiles, script: 'files.js' },
  '/account/data': { template: showData, script: 'data.js' },
}

/** The script of the pages to which mails link, with a token. */
const MAIL_LINK = 'mail-link.js'

/** Returns the pages that the options ask for. */
export function listPages (
  options: Pick<Options, 'signUp' | 'loginMail' | 'passwordUrl' | 'providers' | 'mailer' | 'without' | 'organizations'>,
  operations: FormOperations
): Page[] {
  return [
    {
      path: '/login',
      template: showLogin,
      title: 'logIn',
      heading: 'logInTo',
      script: 'login.js',
      notices: { out: 'loggedOut', ended: 'sessionOver', deleted: 'accountDeleted', confirm: 'stepUpNone' },
      form: {
        operation: operations.logIn, next: 'account', returns: true, explainsErrors: true, explain: explainLogin,
      },
    },
    {
      path: '/login/second-factor',
      template: showLogin,
      title: 'logIn',
      heading: 'logInTo',
      script: 'login.js',
      isPersonal: true,
      form: {
        operation: operations.secondFactor,
        next: '../account',
        returns: true,
        waitsForChallenge: true,
        explain: explainSecondFactor,
      },
    },
    ...options.loginMail ? listLoginMailPages(operations) : [],
    {
      path: '/forgot-password',
      template: showForgotPassword,
      title: 'forgotTitle',
      script: 'mail-form.js',
      notices: { sent: 'forgotSent' },
      sendsMail: true,
      form: { operation: operations.requestReset, next: 'forgot-password?sent', keepsReturn: true },
    },
    ...options.passwordUrl === undefined
      ? [{
        path: '/set-password',
        template: showSetPassword,
        title: 'setPasswordTitle',
        script: MAIL_LINK,
        next: 'account',
        mailLink: {
          check: 'auth/password-reset/check',
          action: 'auth/password-reset/confirm',
          help: ['forgot-password', 'requestLink'],
          done: 'passwordSet',
        },
      } satisfies Page]
      : [],
    ...options.signUp
      ? [
          {
            path: '/sign-up',
            template: showSignUp,
            title: 'signUpTitle',
            heading: 'signUpFor',
            script: 'mail-form.js',
            notices: { sent: 'signUpSent' },
            sendsMail: true,
            form: { operation: operations.signUp, next: 'sign-up?sent', keepsReturn: true },
          } as const,
        ]
      : [],
    ...confirmsSignUps(options)
      ? [
          {
            path: '/sign-up/confirm',
            template: showConfirmSignUp,
            title: 'confirmSignUpTitle',
            script: MAIL_LINK,
            next: '../account',
            mailLink: {
              check: 'auth/sign-up/check',
              action: 'auth/sign-up/confirm',
              help: options.signUp ? ['sign-up', 'signUpTitle'] : ['login', 'logIn'],
              done: 'confirmSignUpDone',
            },
          } satisfies Page,
        ]
      : [],
    {
      path: '/verify-email',
      template: showVerifyEmail,
      title: 'verifyTitle',
      script: MAIL_LINK,
      mailLink: {
        check: 'auth/email-verification/check',
        action: 'auth/email-verification/confirm',
        help: ['account', 'accountTitle'],
        done: 'verifyDone',
      },
    },
    {
      path: '/undo',
      template: showUndo,
      title: 'undoTitle',
      script: MAIL_LINK,
      mailLink: {
        check: 'auth/undo/check', action: 'auth/undo', help: ['forgot-password', 'requestLink'], done: 'undoDone',
      },
    },
    ...options.organizations
      ? [{
        path: '/join',
        template: showJoin,
        title: 'joinTitle',
        script: 'join.js',
        next: 'account',
        mailLink: {
          check: 'auth/invitations/check',
          action: 'auth/invitations/accept',
          help: ['account', 'accountTitle'],
          invalid: 'joinVoid',
          done: 'joinDone',
        },
      } satisfies Page]
      : [],
    ...listAccountPages({ hasFiles: !options.without.includes('uploads'), hasOrganizations: options.organizations !== undefined })
      .map(([path, title]): Page => ({ path, title, ...ofAccount[path], isPersonal: true, isWide: true })),
  ]
}

// Each is the page for the login, with another step.
function listLoginMailPages ({ requestLoginMail, logInByCode }: FormOperations): Page[] {
  const page = { template: showLogin, title: 'logIn', heading: 'logInTo', script: 'login.js' } as const
  return [
    {
      ...page,
      path: '/login/mail',
      sendsMail: true,
      values: { byMail: true, showsMail: true },
      form: {
        operation: requestLoginMail,
        next: '../account',
        returns: true,
        onSuccess: (loginId) => ({ showsMail: false, showsMailCode: true, loginId: `${loginId}` }),
        explain: ({ text }) => ({ mailAlert: text }),
      },
    },
    {
      ...page,
      path: '/login/mail/code',
      values: { byMail: true, showsMail: true },
      form: { operation: logInByCode, next: '../../account', returns: true, explain: explainMailCode },
    },
    {
      ...page,
      path: '/login/mail/confirm',
      values: { byMail: true, showsMailLink: true },
      next: '../../account',
      takesToken: true,
    },
  ]
}

function explainMailCode (failure: FormFailure): PageValues {
  const { challenge, methods = '' } = explainLogin(failure) ?? {}
  if (challenge !== undefined) return { challenge, methods, showsMail: false }
  const { loginId } = failure.body
  if (typeof loginId !== 'string' || loginId === '') return { mailAlert: failure.text }
  return { showsMail: false, showsMailCode: true, loginId, mailCodeAlert: failure.text }
}

// After the first factor, the page asks for the second one.
function explainLogin ({ error }: FormFailure): PageValues | undefined {
  if (!(error instanceof SecondFactorRequired) || error.challenge === undefined) return undefined
  return { challenge: error.challenge, methods: error.methods.join(' ') }
}

// Without a challenge that may still be used, the login starts again.
function explainSecondFactor ({ error, text, body: { challenge, recoveryCode } }: FormFailure): PageValues {
  if (error instanceof InvalidChallenge || typeof challenge !== 'string' || challenge === '') return { alert: text }
  return { challenge, ...recoveryCode === undefined ? { codeAlert: text } : { recoveryAlert: text } }
}
