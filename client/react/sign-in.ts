/// <reference lib="dom" />
import { useEffect, useRef, useState, type ReactElement } from 'react'
import { unwrap, type User } from '../index.ts'
import { UsherError } from '../error.ts'
import { usePasskey } from '../passkeys.ts'
import { useProvided } from './context.ts'
import {
  Alert, Button, CodeField, EmailField, failureText, Form, h, isAbandoned, part, PasswordField, Status, useAction,
  usePasskeySupport, type CommonProps,
} from './elements.ts'
import { useSignInSettings } from './hooks.ts'
import { useSession } from './session.ts'
import { format } from './texts.ts'

export interface SignInProps extends CommonProps {
  /** Is called after the login, for example to go to another page. */
  onSignIn?: (user: User) => void
  /** Where a provider leads back to. Default: the page itself. */
  returnTo?: string
  /** Where users sign up. There is no link if the service has no sign-up. Default: none. */
  signUpUrl?: string
  /** Whether the login by mail is offered, where the service has it. Default: true. */
  loginMail?: boolean
  /** Whether users can log in by passkey, where the browser can. Default: true. */
  passkeys?: boolean
}

type Step =
  { readonly name: 'first' | 'mail' | 'forgot', readonly notice?: string } |
  { readonly name: 'mail-code', readonly email: string } |
  { readonly name: 'second', readonly challenge: string, readonly methods: readonly string[] }

const FIRST: Step = { name: 'first' }
// The options of a ceremony are good for five minutes.
const CONDITIONAL_MS = 4 * 60 * 1000

/** A login: by password, passkey, provider and mail, with the second factor, and with a link to set a password. */
export function SignIn (props: SignInProps): ReactElement {
  const { className, onSignIn, passkeys = true, loginMail = true } = props
  const { texts } = useProvided()
  const { user } = useSession()
  const [step, setStep] = useState<Step>(FIRST)
  const isSupported = usePasskeySupport()
  const root = useRef<HTMLDivElement>(null)
  const { name } = step
  const former = useRef(name)
  const hasPasskeys = passkeys && isSupported

  // The first field of another step gets the focus, which is nowhere else now.
  useEffect(() => {
    if (former.current !== name) root.current?.querySelector('input')?.focus()
    former.current = name
  }, [name])

  /** Runs a login, and asks for the second factor if there is one. */
  async function logIn (run: () => Promise<User>): Promise<void> {
    try {
      const user = await run()
      onSignIn?.(user)
    } catch (error) {
      if (!(error instanceof UsherError)) throw error
      if (error.challenge !== undefined) {
        return setStep({ name: 'second', challenge: error.challenge, methods: error.methods })
      }
      // The login starts again.
      if (error.code !== 'INVALID_CHALLENGE') throw error
      setStep({ name: 'first', notice: failureText(error, texts) })
    }
  }

  const show = () => {
    switch (step.name) {
      case 'first': return h(FirstStep, { ...props, logIn, setStep, hasPasskeys, loginMail, notice: step.notice })
      case 'second': return h(SecondStep, { logIn, setStep, hasPasskeys, ...step })
      case 'mail': return h(MailStep, { setStep })
      case 'mail-code': return h(MailCodeStep, { logIn, setStep, email: step.email })
      case 'forgot': return h(ForgotStep, { setStep })
    }
  }
  return part('div', 'sign-in', { className, ref: root }, user
    ? [
        part('p', 'status', { key: 'user', role: 'status' }, format(texts.loggedInAs, { name: user.name })),
        h(LogOut, { key: 'out' }),
      ]
    : show())
}

function LogOut (): ReactElement {
  const { client, texts } = useProvided()
  const { act, isBusy, error } = useAction()
  return h(
    'div', null, h(Alert, null, error === undefined ? '' : failureText(error, texts)),
    h(Button, { onUse: () => act(() => client.logout()), isBusy }, texts.logOut)
  )
}

interface StepProps {
  logIn: (run: () => Promise<User>) => Promise<void>
  setStep: (step: Step) => void
}

function FirstStep (
  { logIn, setStep, hasPasskeys, loginMail, notice, returnTo, signUpUrl }:
  StepProps & SignInProps & { hasPasskeys: boolean, notice: string | undefined }
): ReactElement {
  const { client, texts } = useProvided()
  const { data: settings } = useSignInSettings()
  const providers = settings?.providers ?? []
  const [status, setStatus] = useState<string>()
  const { offered, isMissing } = useOfferedPasskey(hasPasskeys, (credential) =>
    logIn(() => client.loginWithPasskey(credential)))
  const isShown = hasPasskeys && !isMissing
  const { act, isBusy, error } = useAction()

  async function logInByPasskey (): Promise<void> {
    setStatus(undefined)
    offered.current?.abort()
    try {
      const credential = await usePasskey(await client.passkeyOptions())
      await logIn(() => client.loginWithPasskey(credential))
    } catch (error) {
      if (!isAbandoned(error)) throw error
      setStatus(texts.passkeyUnused)
    }
  }
  // The code is that of a wrong password, whose text would mislead.
  const isRejected = error instanceof UsherError && error.status === 401
  const alert = error === undefined ? notice : isRejected ? texts.passkeyRejected : failureText(error, texts)
  const here = () => returnTo ?? location.pathname + location.search

  return h(
    'div', null,
    h(Alert, null, alert),
    h(Form, {
      submit: texts.logIn,
      label: texts.logIn,
      onSubmit: (form) => logIn(() => client.login({
        email: String(form.get('email')), password: String(form.get('password')),
      })),
    }, h(EmailField, { more: { autoComplete: 'username webauthn' } }), h(PasswordField)),
    part('div', 'others', { role: 'group' },
      (isShown || providers.length > 0) && part('p', 'or', {}, texts.or),
      isShown && h(Button, { onUse: () => act(logInByPasskey), isBusy }, texts.passkeyLogIn),
      h(Status, null, status),
      providers.map(({ id, name }) => part('a', 'provider', {
        key: id,
        href: client.providerUrl(id, returnTo),
        // The address of the page is known in the browser only.
        onClick: (event: { currentTarget: HTMLAnchorElement }) => {
          event.currentTarget.href = client.providerUrl(id, here())
        },
      }, format(texts.continueWith, { provider: name })))),
    part('div', 'links', {},
      loginMail && settings?.loginMail && h(Button, { kind: 'link', onUse: () => setStep({ name: 'mail' }) }, texts.loginMailLink),
      h(Button, { kind: 'link', onUse: () => setStep({ name: 'forgot' }) }, texts.forgotTitle),
      signUpUrl && settings?.signUp !== false && part('a', 'link', { href: signUpUrl }, texts.signUpTitle))
  )
}

type Credential = Awaited<ReturnType<typeof usePasskey>>

/**
 * Lets the browser offer passkeys in the field for the address. Returns what ends that, and whether the service has no
 * passkeys at this address.
 */
function useOfferedPasskey (isOffered: boolean, logIn: (credential: Credential) => Promise<void>) {
  const { client } = useProvided()
  const aborter = useRef<AbortController>(undefined)
  const [round, setRound] = useState(0)
  const [isMissing, setMissing] = useState(false)
  const latest = useRef(logIn)
  useEffect(() => { latest.current = logIn })

  useEffect(() => {
    if (!isOffered) return
    const { signal } = aborter.current = new AbortController()
    const timer = setTimeout(() => setRound(round + 1), CONDITIONAL_MS)
    void offer(signal)
    return () => {
      clearTimeout(timer)
      aborter.current?.abort()
    }
  }, [isOffered, round, client])
  return { offered: aborter, isMissing }

  async function offer (signal: AbortSignal): Promise<void> {
    try {
      // eslint-disable-next-line no-restricted-properties -- Where it is missing, nothing is offered.
      if (!await PublicKeyCredential.isConditionalMediationAvailable?.() || signal.aborted) return
      const options = await client.passkeyOptions()
      if (signal.aborted) return
      const credential = await usePasskey(options, { mediation: 'conditional', signal })
      if (!signal.aborted) await latest.current(credential)
    } catch (error) {
      // Nobody has asked for it. The button says what else is wrong.
      if (!signal.aborted && error instanceof UsherError && error.status === 409) setMissing(true)
    }
  }
}

function SecondStep (
  { logIn, setStep, hasPasskeys, challenge, methods }:
  StepProps & { hasPasskeys: boolean, challenge: string, methods: readonly string[] }
): ReactElement {
  const { client, texts } = useProvided()
  const [status, setStatus] = useState<string>()
  const [byRecovery, setByRecovery] = useState(!methods.includes('totp') && methods.includes('recovery-code'))
  const { act, isBusy, error } = useAction()

  async function byPasskey (): Promise<void> {
    setStatus(undefined)
    try {
      const passkey = await usePasskey(await client.passkeyOptions())
      await logIn(() => client.completeLogin({ challenge, passkey }))
    } catch (error) {
      if (!isAbandoned(error)) throw error
      setStatus(texts.passkeyUnused)
    }
  }
  const complete = (factor: { code: string } | { recoveryCode: string }) =>
    logIn(() => client.completeLogin({ challenge, ...factor }))
  const isRejected = error instanceof UsherError && error.status === 401
  const hasCode = methods.includes('totp') || byRecovery

  return h(
    'div', null,
    part('h2', 'title', {}, texts.secondFactorTitle),
    hasCode && (byRecovery
      ? h(Form, {
        key: 'recovery',
        submit: texts.logIn,
        onSubmit: (form) => complete({ recoveryCode: String(form.get('recoveryCode')) }),
      }, h(CodeField, { name: 'recoveryCode', label: texts.recoveryCode, hint: texts.recoveryHint, digits: false }))
      : h(Form, {
        key: 'code', submit: texts.logIn, onSubmit: (form) => complete({ code: String(form.get('code')) }),
      }, h(CodeField, { label: texts.code, hint: texts.codeHint }))),
    h(Alert, null, error === undefined ? '' : isRejected ? texts.passkeyRejected : failureText(error, texts)),
    h(Status, null, status),
    hasPasskeys && methods.includes('passkey') &&
      h(Button, { onUse: () => act(byPasskey), isBusy }, texts.passkeyUse),
    part('div', 'links', {},
      !byRecovery && methods.includes('recovery-code') &&
        h(Button, { kind: 'link', onUse: () => setByRecovery(true) }, texts.recoveryUse),
      h(Button, { kind: 'link', onUse: () => setStep(FIRST) }, texts.loginAgain))
  )
}

function MailStep ({ setStep }: Pick<StepProps, 'setStep'>): ReactElement {
  const { client, texts } = useProvided()
  return h(
    'div', null,
    h(Form, {
      submit: texts.loginMailButton,
      label: texts.loginMailLink,
      onSubmit: async (form) => {
        const email = String(form.get('email'))
        await client.requestLoginMail(email)
        setStep({ name: 'mail-code', email })
      },
    }, part('p', 'hint', {}, texts.loginMailHint), h(EmailField)),
    part('div', 'links', {}, h(Button, { kind: 'link', onUse: () => setStep(FIRST) }, texts.loginMailOther))
  )
}

function MailCodeStep ({ logIn, setStep, email }: StepProps & { email: string }): ReactElement {
  const { client, texts } = useProvided()
  return h(
    'div', null,
    part('p', 'status', { role: 'status' }, format(texts.loginMailSentTo, { email })),
    h(Form, {
      submit: texts.logIn,
      label: texts.mailCode,
      onSubmit: (form) => logIn(() => client.loginByMail({ code: String(form.get('code')) })),
    }, h(CodeField, { label: texts.mailCode, hint: texts.mailCodeHint })),
    part('div', 'links', {},
      h(Button, { kind: 'link', onUse: () => setStep({ name: 'mail' }) }, texts.wrongAddress),
      h(Button, { kind: 'link', onUse: () => setStep(FIRST) }, texts.loginMailOther))
  )
}

function ForgotStep ({ setStep }: Pick<StepProps, 'setStep'>): ReactElement {
  const { client, texts } = useProvided()
  const [sentTo, setSentTo] = useState<string>()
  return h(
    'div', null,
    sentTo === undefined && h(Form, {
      submit: texts.forgotButton,
      label: texts.forgotTitle,
      onSubmit: async (form) => {
        const email = String(form.get('email'))
        await unwrap(client.post('/api/auth/password-reset', { body: { email } }))
        setSentTo(email)
      },
    }, part('p', 'hint', {}, texts.forgotHint), h(EmailField)),
    h(Status, null, sentTo && format(texts.forgotSentTo, { email: sentTo })),
    part('div', 'links', {}, h(Button, { kind: 'link', onUse: () => setStep(FIRST) }, texts.logIn))
  )
}
