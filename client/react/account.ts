/// <reference lib="dom" />
import {
  createContext, useContext, useEffect, useId, useRef, useState, type ReactElement, type ReactNode,
} from 'react'
import { UsherError } from '../error.ts'
import { useProvided } from './context.ts'
import { nameOfDevice } from './device.ts'
import {
  Alert, Button, CodeField, Dialog, EmailField, failureText, Field, Form, h, HostFields, isAbandoned, NewPasswordField,
  part, PasswordField, Status, useAction, usePasskeySupport, type CommonProps,
} from './elements.ts'
import { readFields, readValues } from './fields.ts'
import {
  useAccount, useApiKeys, useFields, useFiles, useIdentities, usePassword, usePasskeys, useProfile, useProviders,
  useSecondFactor, useSessions, type FileActions, type FileLink, type FileRecord, type Passkey,
} from './hooks.ts'
import type { Used } from './resource.ts'
import { useSession } from './session.ts'
import { needsStepUp, useStepUp, type StepUpActions } from './step-up.ts'
import { format } from './texts.ts'

export type AccountSection =
  'profile' | 'password' | 'passkeys' | 'totp' | 'identities' | 'sessions' | 'keys' | 'files' | 'data'

export interface AccountProps extends CommonProps {
  /** The sections and their order. Default: all. */
  sections?: readonly AccountSection[]
  /** The actions that a new API key can be limited to. Default: it may do all that a key can. */
  keyActions?: readonly string[]
}

interface Tools {
  /** Runs an action, with step-up if it is needed. */
  readonly run: StepUpActions['run']
  /** Asks whether something that cannot be undone shall be done. */
  readonly ask: (question: string, label: string) => Promise<boolean>
  readonly keyActions: readonly string[]
}

const ToolsContext = createContext<Tools | undefined>(undefined)
const useTools = (): Tools => useContext(ToolsContext)!

const SECTIONS: Readonly<Record<AccountSection, () => ReactElement | null>> = {
  profile: ProfileSection,
  password: PasswordSection,
  passkeys: PasskeysSection,
  totp: TotpSection,
  identities: IdentitiesSection,
  sessions: SessionsSection,
  keys: KeysSection,
  files: FilesSection,
  data: DataSection,
}
const ALL = Object.keys(SECTIONS) as AccountSection[]
// What whoever must have a second factor can do until then.
const FACTORS: readonly AccountSection[] = ['passkeys', 'totp']
const NO_ACTIONS: readonly string[] = []

/** The account of the user: everything that Usher's page /account has. */
export function Account ({ className, sections = ALL, keyActions = NO_ACTIONS }: AccountProps): ReactElement {
  const { texts } = useProvided()
  const { state, error } = useSession()
  const { error: rejected, reload } = useSessions()
  const stepUp = useStepUp()
  const [question, setQuestion] = useState<Question>()
  const isRestricted = rejected instanceof UsherError && rejected.code === 'SECOND_FACTOR_MISSING'

  const ask = (text: string, label: string) => new Promise<boolean>((resolve) => {
    setQuestion({ text, label, answer: (answer) => { setQuestion(undefined); resolve(answer) } })
  })
  const shown = sections.filter((name) => !isRestricted || FACTORS.includes(name))
  const content = state === 'active'
    ? h(
      ToolsContext.Provider, { value: { run: stepUp.run, ask, keyActions } },
      isRestricted && h(Requirement, { reload }),
      shown.map((name) => h(SECTIONS[name], { key: name }))
    )
    : error !== undefined && h(Alert, null, failureText(error, texts))
  return part('div', 'account', { className },
    content,
    state === 'unknown' && error === undefined && part('p', 'hint', {}, texts.loading),
    question && h(Confirmation, question),
    stepUp.isNeeded && h(StepUpDialog, { stepUp, isFactorNeeded: isRestricted }))
}

interface Question { readonly text: string, readonly label: string, readonly answer: (answer: boolean) => void }

function Confirmation ({ text, label, answer }: Question): ReactElement {
  const { texts } = useProvided()
  return h(
    Dialog, { title: text, onClose: () => answer(false) },
    part('div', 'actions', {},
      // The first one has the focus.
      h(Button, { onUse: () => answer(false) }, texts.cancelButton),
      h(Button, { kind: 'danger', onUse: () => answer(true) }, label))
  )
}

/** Asks the user to confirm to be the user, in whatever way the user can. */
function StepUpDialog (
  { stepUp, isFactorNeeded }: { stepUp: ReturnType<typeof useStepUp>, isFactorNeeded: boolean }
): ReactElement {
  const { texts } = useProvided()
  const { user } = useSession()
  const { data, error, confirm, cancel } = stepUp
  const canUsePasskey = usePasskeySupport() && (data?.passkeys ?? 0) > 0
  const { data: providers = [] } = useProviders()
  const [mailId, setMailId] = useState<string>()
  const [byRecovery, setByRecovery] = useState(false)
  const action = useAction()
  const hasTotp = data !== undefined && data.totp !== null
  // With a second factor, nothing else suffices.
  const isPlain = data !== undefined && !hasTotp && !isFactorNeeded
  const offered = isPlain ? providers.filter(({ id }) => data.providers.includes(id)) : []
  const hasPassword = isPlain && data.password
  const hasMail = isPlain && data.mail
  const hasNone = data && !hasTotp && !canUsePasskey && !hasPassword && !hasMail && offered.length === 0
  const problem = action.error ?? error
  const isReported = problem !== undefined && !isAbandoned(problem)

  return h(
    Dialog, { title: texts.stepUpTitle, onClose: cancel },
    part('p', 'hint', {}, texts.stepUpHint),
    hasPassword && h(Form, {
      submit: texts.stepUpButton, onSubmit: (form) => confirm({ password: String(form.get('password')) }),
    },
    // Password managers look for the name that the password belongs to.
    h('input', { type: 'email', autoComplete: 'username', defaultValue: user?.email, hidden: true }),
    h(PasswordField)),
    hasMail && (mailId === undefined
      ? h(Button, {
        onUse: () => action.act(async () => setMailId(await stepUp.requestMail())), isBusy: action.isBusy,
      }, texts.stepUpMail)
      : h(Form, {
        submit: texts.stepUpButton,
        onSubmit: (form) => confirm({ mail: { id: mailId, code: String(form.get('code')) } }),
      }, h(CodeField, { label: texts.mailCode, hint: texts.stepUpMailSent }))),
    hasTotp && (byRecovery
      ? h(Form, {
        key: 'recovery',
        submit: texts.stepUpButton,
        onSubmit: (form) => confirm({ recoveryCode: String(form.get('recoveryCode')) }),
      }, h(CodeField, { name: 'recoveryCode', label: texts.recoveryCode, hint: texts.recoveryHint, digits: false }))
      : h(Form, {
        key: 'code', submit: texts.stepUpButton, onSubmit: (form) => confirm({ code: String(form.get('code')) }),
      }, h(CodeField, { label: texts.code, hint: texts.codeHint }))),
    hasNone && part('p', 'text', {}, texts.stepUpNone),
    h(Alert, null, isReported && failureText(problem, texts)),
    part('div', 'actions', {},
      canUsePasskey &&
        h(Button, { onUse: () => action.act(stepUp.confirmByPasskey), isBusy: action.isBusy }, texts.passkeyUse),
      offered.map(({ id, name }) => h(Button, {
        key: id,
        onUse: () => action.act(async () => location.assign(await stepUp.beginProvider(id, here()))),
        isBusy: action.isBusy,
      }, format(texts.stepUpWith, { provider: name }))),
      hasTotp && !byRecovery && h(Button, { kind: 'link', onUse: () => setByRecovery(true) }, texts.recoveryUse),
      h(Button, { onUse: cancel }, texts.cancelButton))
  )
}

const here = (): string => location.pathname + location.search

/** Says that a second factor is needed, and lets a session use the one that there is. */
function Requirement ({ reload }: { reload: () => Promise<void> }): ReactElement {
  const { texts } = useProvided()
  const { run } = useTools()
  const { data } = useSecondFactor()
  const { act, isBusy } = useAction()
  let isAsked = false
  const confirm = () => act(async () => {
    await ignoreCancelled(run(async () => {
      if (isAsked) return
      isAsked = true
      throw new UsherError(403, [texts.factorRequired], 'STEP_UP_REQUIRED')
    }))
    await reload()
  })
  return part('section', 'section', {},
    h(Alert, null, texts.factorRequired),
    data && (data.totp || data.passkeys > 0) && h(Button, { onUse: confirm, isBusy }, texts.factorConfirm))
}

// Nothing else rejects with this once an action runs with step-up.
const ignoreCancelled = (running: Promise<unknown>): Promise<unknown> => running.catch((error) => {
  if (!needsStepUp(error)) throw error
})

interface Doing {
  /** What is said afterwards. */
  done?: string
  /** What is asked before, and the text of the button that agrees. */
  question?: string
  label?: string
}

/** What all sections have: a title, failures, what has happened, and actions. */
function useSection (title: string, hint?: string) {
  const { texts } = useProvided()
  const { run, ask } = useTools()
  const { act, isBusy, error } = useAction()
  const [notice, setNotice] = useState('')
  const heading = useRef<HTMLHeadingElement>(null)
  const id = useId()
  useEffect(() => {
    // The element that had the focus is gone.
    if (notice !== '' && document.activeElement === document.body) heading.current?.focus()
  }, [notice])

  /** Runs an action of a button. */
  const perform = (action: () => Promise<unknown>, { done, question, label = '' }: Doing = {}) => act(async () => {
    setNotice('')
    if (question !== undefined && !await ask(question, label)) return
    try {
      await run(action)
      // Some actions say it themselves.
      if (done !== undefined) setNotice(done)
    } catch (error) {
      if (!needsStepUp(error)) throw error
    }
  })

  /** Runs an action of a form. */
  async function submit (action: () => Promise<unknown>): Promise<void> {
    setNotice('')
    await ignoreCancelled(run(action))
  }

  type Shown = Pick<Used<unknown>, 'data' | 'error' | 'reload'>
  function show (loaded: Shown, content: () => ReactNode): ReactElement | null {
    // A mount may be without files.
    if (loaded.error instanceof UsherError && loaded.error.status === 404) return null
    return part('section', 'section', { 'aria-labelledby': id },
      part('h2', 'title', { id, ref: heading, tabIndex: -1 }, title),
      hint && part('p', 'hint', {}, hint),
      h(Alert, null, error !== undefined && !isAbandoned(error) && failureText(error, texts)),
      h(Status, null, notice),
      loaded.error !== undefined && part('div', 'failure', {},
        h(Alert, null, failureText(loaded.error, texts)), h(Button, { onUse: loaded.reload }, texts.tryAgain)),
      loaded.data === undefined
        ? loaded.error === undefined && part('p', 'hint', {}, texts.loading)
        : content())
  }
  return { texts, perform, submit, show, setNotice, isBusy }
}

const list = (children: ReactNode): ReactElement => part('ul', 'list', {}, children)

const row = (key: string, title: ReactNode, hint: ReactNode, ...actions: ReactNode[]): ReactElement =>
  part('li', 'row', { key },
    part('div', 'main', {}, part('p', 'name', {}, title), part('p', 'hint', {}, hint)),
    part('div', 'actions', {}, ...actions))

const dayOf = (instant: string | null, never: string): string =>
  instant === null ? never : new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' }).format(new Date(instant))

const timeOf = (instant: string): string =>
  new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(instant))

function ProfileSection (): ReactElement | null {
  const fields = useFields()
  const profile = useProfile()
  const { texts, submit, perform, show, setNotice, isBusy } = useSection(useProvided().texts.profileTitle)
  const { data: user } = profile
  return show(profile, () => h(
    'div', null,
    h(Form, {
      // Fields show another value when the server has one.
      key: user!.updatedAt,
      submit: texts.saveButton,
      label: texts.profileTitle,
      onSubmit: (form) => submit(async () => {
        const [name, email] = ['name', 'email'].map((name) => String(form.get(name)))
        const { isPending } = await profile.update({
          ...readValues(readFields(fields), form, user as never),
          ...name !== user!.name && { name: name! },
          ...email !== user!.email && { email: email! },
        })
        setNotice(isPending ? format(texts.emailPending, { email: email! }) : texts.profileSaved)
      }),
    },
    h(Field, {
      name: 'name', label: texts.name, more: { autoComplete: 'name', required: true, defaultValue: user!.name },
    }),
    h(EmailField, { more: { autoComplete: 'email', defaultValue: user!.email } }),
    h(HostFields, { fields, values: user as never })),
    user!.emailVerified === false && part('div', 'actions', {},
      part('p', 'text', {}, texts.unverified),
      h(Button, {
        onUse: () => perform(profile.requestVerification, { done: texts.verifySent }), isBusy,
      }, texts.verifySend))
  ))
}

function PasswordSection (): ReactElement | null {
  const { data: user } = useProfile()
  const password = usePassword()
  const { texts, submit, perform, show, setNotice, isBusy } = useSection(useProvided().texts.passwordTitle)
  // The form is empty again afterwards.
  const [round, setRound] = useState(0)
  return show(password, () => password.data
    ? h(Form, {
      key: round,
      submit: texts.changePasswordButton,
      label: texts.passwordTitle,
      onSubmit: (form) => submit(async () => {
        await password.change(String(form.get('currentPassword')), String(form.get('password')))
        setRound(round + 1)
        setNotice(texts.passwordChanged)
      }),
    },
    h('input', { type: 'email', autoComplete: 'username', defaultValue: user?.email, hidden: true }),
    h(PasswordField, { name: 'currentPassword', label: texts.currentPassword }),
    h(NewPasswordField, { label: texts.newPassword }))
    : h(
      'div', null, part('p', 'text', {}, texts.passwordNone),
      user?.email !== undefined && h(Button, {
        onUse: () => perform(() => password.requestReset(user.email!), {
          done: format(texts.forgotSentTo, { email: user.email! }),
        }),
        isBusy,
      }, texts.passwordRequest)
    ))
}

function PasskeysSection (): ReactElement | null {
  const passkeys = usePasskeys()
  const isSupported = usePasskeySupport()
  const { passkeysTitle, passkeysHint } = useProvided().texts
  const { texts, perform, submit, show, setNotice, isBusy } = useSection(passkeysTitle, passkeysHint)
  const [renamed, setRenamed] = useState<string>()

  const add = () => perform(async () => {
    try {
      await passkeys.add()
      setNotice(texts.passkeyAdded)
    } catch (error) {
      if (!isAbandoned(error)) throw error
      setNotice(texts.passkeyNotAdded)
    }
  })
  const rename = ({ id, name }: Passkey) => part('li', 'row', { key: id },
    h(Form, {
      submit: texts.saveButton,
      label: texts.passkeyName,
      onSubmit: (form) => submit(async () => {
        await passkeys.rename(id, String(form.get('name')))
        setRenamed(undefined)
        setNotice(texts.passkeyRenamed)
      }),
      others: h(Button, { onUse: () => setRenamed(undefined) }, texts.cancelButton),
    }, h(Field, {
      name: 'name',
      label: texts.passkeyName,
      more: { defaultValue: name, required: true, autoComplete: 'off', autoFocus: true },
    })))
  return show(passkeys, () => h(
    'div', null,
    passkeys.data!.length === 0
      ? part('p', 'text', {}, texts.passkeysNone)
      : list(passkeys.data!.map((passkey) => {
        const { id, name, createdAt, lastUsedAt } = passkey
        if (id === renamed) return rename(passkey)
        const used = dayOf(lastUsedAt, texts.never)
        return row(
          id, name, `${texts.created}: ${dayOf(createdAt, '')} · ${texts.lastUsed}: ${used}`,
          h(Button, { of: name, onUse: () => setRenamed(id) }, texts.passkeyRename),
          h(Button, {
            of: name,
            isBusy,
            onUse: () => perform(() => passkeys.remove(id), {
              question: texts.passkeyRemoveConfirm, label: texts.passkeyRemove, done: texts.passkeyRemoved,
            }),
          }, texts.passkeyRemove)
        )
      })),
    isSupported && h(Button, { onUse: add, isBusy }, texts.passkeyAdd)
  ))
}

function TotpSection (): ReactElement | null {
  const factor = useSecondFactor()
  const { totpTitle, totpHint } = useProvided().texts
  const { texts, perform, submit, show, setNotice, isBusy } = useSection(totpTitle, totpHint)
  const [started, setStarted] = useState<Awaited<ReturnType<typeof factor.startTotp>>>()
  const [codes, setCodes] = useState<readonly string[]>()

  const showStarted = ({ secret, uri, qrCode }: NonNullable<typeof started>) => h(
    'div', null,
    part('p', 'text', {}, texts.totpSteps),
    h(QrCode, { source: qrCode, label: texts.totpQrCode }),
    // In groups, because people type it.
    part('p', 'text', {}, texts.totpSecret, ' ', part('code', 'secret', {}, secret.match(/.{1,4}/g)!.join(' '))),
    part('p', 'text', {}, part('a', 'link', { href: uri }, texts.totpOpen)),
    h(Form, {
      submit: texts.totpButton,
      label: texts.totpTitle,
      onSubmit: (form) => submit(async () => {
        setCodes(await factor.confirmTotp(String(form.get('code'))))
        setStarted(undefined)
        setNotice(texts.totpActive)
      }),
      others: h(Button, { onUse: () => setStarted(undefined) }, texts.cancelButton),
    }, h(CodeField, { label: texts.code, hint: texts.totpConfirm }))
  )
  const showCodes = (codes: readonly string[]) => h(
    'div', null,
    part('h3', 'title', {}, texts.recoveryTitle),
    part('p', 'text', {}, texts.recoveryOnce),
    part('ol', 'codes', {}, codes.map((code) => h('li', { key: code }, part('code', 'secret', {}, code)))),
    h(Button, { onUse: () => setCodes(undefined) }, texts.recoveryDone)
  )
  const showActive = (since: string) => h(
    'div', null,
    part('p', 'text', {}, `${texts.totpSince}: ${dayOf(since, '')}`),
    part('p', 'text', {}, format(texts.recoveryCodesLeft, { count: factor.data!.recoveryCodesLeft })),
    part('div', 'actions', {},
      h(Button, {
        isBusy,
        onUse: () => perform(async () => setCodes(await factor.createRecoveryCodes()), {
          question: texts.recoveryNewConfirm, label: texts.recoveryNew,
        }),
      }, texts.recoveryNew),
      h(Button, {
        isBusy,
        onUse: () => perform(factor.removeTotp, {
          question: texts.totpRemoveConfirm, label: texts.totpRemove, done: texts.totpRemoved,
        }),
      }, texts.totpRemove))
  )
  return show(factor, () => {
    const { totp } = factor.data!
    if (codes) return showCodes(codes)
    if (started) return showStarted(started)
    if (totp) return showActive(totp.confirmedAt)
    const start = () => perform(async () => setStarted(await factor.startTotp()))
    return h(Button, { onUse: start, isBusy }, texts.totpSetUp)
  })
}

const SHAPES: Readonly<Record<string, readonly string[]>> = {
  svg: ['viewBox'], rect: ['x', 'y', 'width', 'height', 'fill'], path: ['d', 'fill'],
}

/** The image of an SVG document of rectangles and paths, made of elements: policies of pages forbid markup. */
function QrCode ({ source, label }: { source: string, label: string }): ReactElement {
  const [image, ...shapes] = [...source.matchAll(/<(svg|rect|path)\b([^>]*)>/g)].map(([, tag, text]) => ({
    tag: tag!,
    props: Object.fromEntries([...text!.matchAll(/([\w-]+)="([^"]*)"/g)]
      .filter(([, name]) => SHAPES[tag!]!.includes(name!)).map(([, name, value]) => [name, value])),
  }))
  return part(
    'svg', 'qr-code', { ...image?.props, role: 'img', 'aria-label': label },
    shapes.map(({ tag, props }, index) => h(tag, { key: index, ...props }))
  )
}

function IdentitiesSection (): ReactElement | null {
  const identities = useIdentities()
  const { data: providers = [] } = useProviders()
  const { identitiesTitle, identitiesHint } = useProvided().texts
  const { texts, perform, show, isBusy } = useSection(identitiesTitle, identitiesHint)
  const nameOf = (id: string) => providers.find((provider) => provider.id === id)?.name ?? id
  if (providers.length === 0 && !identities.data?.length) return null
  return show(identities, () => h(
    'div', null,
    identities.data!.length === 0
      ? part('p', 'text', {}, texts.identitiesNone)
      : list(identities.data!.map(({ id, provider, email, createdAt }) => {
        const name = email === null ? nameOf(provider) : `${nameOf(provider)}: ${email}`
        return row(id, name, `${texts.created}: ${dayOf(createdAt, '')}`, h(Button, {
          of: name,
          isBusy,
          onUse: () => perform(() => identities.unlink(id), {
            question: texts.identityRemoveConfirm, label: texts.identityRemove, done: texts.identityRemoved,
          }),
        }, texts.identityRemove))
      })),
    part('div', 'actions', {}, providers.map(({ id, name }) => h(Button, {
      key: id, isBusy, onUse: () => perform(async () => location.assign(await identities.link(id, here()))),
    }, format(texts.identityLink, { provider: name }))))
  ))
}

function SessionsSection (): ReactElement | null {
  const sessions = useSessions()
  const { logOut, logOutEverywhere } = useAccount()
  const { sessionsTitle, sessionsHint } = useProvided().texts
  const { texts, perform, show, isBusy } = useSection(sessionsTitle, sessionsHint)
  // This device comes first.
  const sorted = [...sessions.data ?? []].sort((one, other) => Number(other.current) - Number(one.current))
  return show(sessions, () => h(
    'div', null,
    list(sorted.map(({ id, userAgent, address, lastUsedAt, current }) => {
      const device = nameOfDevice(userAgent, texts)
      const name = current ? [device, ' ', part('span', 'badge', { key: 'badge' }, texts.thisSession)] : device
      return row(id, name, `${address} · ${texts.lastUsed}: ${timeOf(lastUsedAt)}`, !current && h(Button, {
        of: device, isBusy, onUse: () => perform(() => sessions.end(id), { done: texts.sessionEnded }),
      }, texts.endSession))
    })),
    part('div', 'actions', {},
      sorted.length > 1 && h(Button, {
        isBusy, onUse: () => perform(sessions.endOthers, { done: texts.othersEnded }),
      }, texts.endOthers),
      h(Button, { isBusy, onUse: () => perform(logOut) }, texts.logOut),
      h(Button, { isBusy, onUse: () => perform(logOutEverywhere) }, texts.logOutEverywhere))
  ))
}

const DAY_MS = 86_400_000

function KeysSection (): ReactElement | null {
  const keys = useApiKeys()
  const { keyActions } = useTools()
  const { keysTitle, keysHint } = useProvided().texts
  const { texts, perform, submit, show, isBusy } = useSection(keysTitle, keysHint)
  const [isOpen, setOpen] = useState(false)
  const [created, setCreated] = useState<string>()

  const create = (form: FormData) => submit(async () => {
    const days = String(form.get('days'))
    const actions = form.getAll('actions').map(String)
    const { key } = await keys.create({
      name: String(form.get('name')),
      ...actions.length > 0 && { actions },
      ...days !== '' && { expiresAt: new Date(Date.now() + Number(days) * DAY_MS).toISOString() },
    })
    setOpen(false)
    setCreated(key)
  })
  const options = [
    ['30', texts.keyMonth], ['90', texts.keyQuarter], ['365', texts.keyYear], ['', texts.never],
  ] as const
  const showForm = () => h(
    Form, {
      submit: texts.keyCreate,
      label: texts.keyNew,
      onSubmit: create,
      others: h(Button, { onUse: () => setOpen(false) }, texts.cancelButton),
    },
    h(Field, { name: 'name', label: texts.keyName, more: { required: true, autoComplete: 'off', autoFocus: true } }),
    h(Field, { name: 'days', label: texts.keyExpires, kind: 'choice', options, more: { defaultValue: '90' } }),
    keyActions.map((action) =>
      h(Field, { key: action, name: 'actions', label: action, kind: 'boolean', more: { value: action } }))
  )
  const showCreated = (key: string) => h(
    'div', null,
    part('h3', 'title', {}, texts.keyShown),
    part('p', 'text', { role: 'status' }, texts.keyOnce),
    part('p', 'text', {}, part('code', 'secret', {}, key)),
    h(Button, { onUse: () => setCreated(undefined) }, texts.keyDone)
  )
  return show(keys, () => h(
    'div', null,
    keys.data!.length === 0
      ? part('p', 'text', {}, texts.keysNone)
      : list(keys.data!.map(({ id, name, createdAt, lastUsedAt, expiresAt }) => row(
        id, name,
        `${texts.created}: ${dayOf(createdAt, '')} · ${texts.lastUsed}: ${dayOf(lastUsedAt, texts.never)} · ` +
          `${texts.keyExpires}: ${dayOf(expiresAt, texts.never)}`,
        h(Button, {
          of: name,
          isBusy,
          onUse: () => perform(() => keys.remove(id), {
            question: texts.keyDeleteConfirm, label: texts.keyDelete, done: texts.keyDeleted,
          }),
        }, texts.keyDelete)
      ))),
    created !== undefined
      ? showCreated(created)
      : isOpen ? showForm() : h(Button, { onUse: () => setOpen(true) }, texts.keyNew)
  ))
}

const UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte']

function sizeOf (bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(bytes, 1)) / 3))
  return new Intl.NumberFormat(undefined, { style: 'unit', unit: UNITS[power]!, maximumFractionDigits: 1 })
    .format(bytes / 1000 ** power)
}

function FilesSection (): ReactElement | null {
  const { client } = useProvided()
  const files = useFiles()
  const { filesTitle, filesHint } = useProvided().texts
  const { texts, perform, show, isBusy } = useSection(filesTitle, filesHint)
  const [progress, setProgress] = useState<{ name: string, part: number }>()
  const [sharedId, setSharedId] = useState<string>()
  const id = useId()

  function upload (input: HTMLInputElement): void {
    const file = input.files?.[0]
    if (!file) return
    const { name } = file
    void perform(async () => {
      try {
        await files.upload(file, { visibility: 'private', onProgress: (part) => setProgress({ name, part }) })
      } finally {
        setProgress(undefined)
        input.value = ''
      }
    }, { done: texts.fileUploaded })
  }
  const shared = files.data?.find((file) => file.id === sharedId)
  const showFile = ({ id, filename, visibility, size, createdAt }: FileRecord) => {
    const isPublic = visibility === 'public'
    // A private file cannot be opened by its address, because a page cannot send a token along.
    const name = isPublic
      ? part('a', 'link', { href: `${client.baseUrl}/api/uploads/${id}` }, filename)
      : filename
    return row(
      id, name, `${isPublic ? texts.filePublic : texts.filePrivate} · ${sizeOf(size)} · ${timeOf(createdAt)}`,
      h(Button, {
        of: filename,
        isBusy,
        onUse: () => perform(() => files.update(id, { visibility: isPublic ? 'private' : 'public' }), {
          done: texts.fileChanged,
        }),
      }, isPublic ? texts.fileMakePrivate : texts.fileMakePublic),
      h(Button, { of: filename, isBusy, onUse: () => setSharedId(id) }, texts.fileLinks),
      h(Button, {
        of: filename,
        isBusy,
        onUse: () => perform(() => files.remove(id), {
          question: texts.fileDeleteConfirm, label: texts.fileDelete, done: texts.fileDeleted,
        }),
      }, texts.fileDelete)
    )
  }
  return show(files, () => h(
    'div', null,
    files.data!.length === 0 ? part('p', 'text', {}, texts.filesNone) : list(files.data!.map(showFile)),
    files.hasMore && h(Button, { onUse: () => perform(files.loadMore), isBusy }, texts.filesMore),
    shared && h(FileLinks, { key: shared.id, file: shared, files, onClose: () => setSharedId(undefined) }),
    part('div', 'field', {},
      part('label', 'label', { htmlFor: id }, texts.fileUpload),
      part('input', 'file', {
        id, type: 'file', onChange: ({ currentTarget }: { currentTarget: HTMLInputElement }) => upload(currentTarget),
      }),
      progress && part('progress', 'progress', {
        max: 1, value: progress.part, 'aria-label': format(texts.fileUploading, progress),
      }))
  ))
}

/** The links to a file. */
function FileLinks ({ file: { id, filename }, files, onClose }: {
  file: FileRecord, files: FileActions, onClose: () => void
}): ReactElement {
  const { texts } = useProvided()
  const { act, isBusy, error } = useAction()
  const [links, setLinks] = useState<readonly FileLink[]>()
  const [created, setCreated] = useState<string>()
  const title = useId()
  const load = async () => setLinks(await files.links(id))
  // The parent gives this component the id of the file as its key.
  useEffect(() => void act(load), [])

  const create = async (form: FormData) => {
    setCreated(await files.createLink(id, { name: String(form.get('name')), seconds: Number(form.get('seconds')) }))
    await load()
  }
  const revoke = (linkId: string) => act(async () => {
    await files.revokeLink(id, linkId)
    setCreated(undefined)
    await load()
  })
  const options = [['3600', texts.linkHour], ['86400', texts.linkDay], ['604800', texts.linkWeek]] as const
  return part('div', 'links-of-file', { role: 'group', 'aria-labelledby': title },
    part('h3', 'title', { id: title }, `${texts.fileLinks}: ${filename}`),
    h(Alert, null, error === undefined ? '' : failureText(error, texts)),
    links?.length === 0 && part('p', 'text', {}, texts.linksNone),
    links && links.length > 0 && list(links.map((link) => row(
      link.id, link.name || texts.linkUnnamed, `${texts.linkUntil} ${timeOf(link.expiresAt)}`,
      h(Button, { of: link.name || texts.linkUnnamed, isBusy, onUse: () => revoke(link.id) }, texts.linkRevoke)
    ))),
    created !== undefined && part('p', 'text', { role: 'status' }, texts.linkOnce),
    created !== undefined && part('p', 'text', {}, part('code', 'secret', {}, created)),
    h(Form, {
      submit: texts.linkCreate,
      label: texts.linkCreate,
      onSubmit: create,
      others: h(Button, { onUse: onClose }, texts.linksDone),
    },
    h(Field, { name: 'name', label: texts.linkName, more: { autoComplete: 'off', maxLength: 100, autoFocus: true } }),
    h(Field, { name: 'seconds', label: texts.linkDuration, kind: 'choice', options, more: { defaultValue: '86400' } })))
}

function DataSection (): ReactElement | null {
  const account = useAccount()
  const { texts, perform, show, isBusy } = useSection(useProvided().texts.dataTitle)
  const download = async () => {
    const content = JSON.stringify(await account.exportData(), null, 2)
    const href = URL.createObjectURL(new Blob([content], { type: 'application/json' }))
    const name = `${location.hostname}-${new Date().toISOString().slice(0, 10)}.json`
    Object.assign(document.createElement('a'), { href, download: name }).click()
    URL.revokeObjectURL(href)
  }
  return show(account, () => h(
    'div', null,
    part('h3', 'title', {}, texts.exportTitle),
    part('p', 'hint', {}, texts.exportHint),
    h(Button, { isBusy, onUse: () => perform(download, { done: texts.exportDone }) }, texts.exportButton),
    part('h3', 'title', {}, texts.deleteTitle),
    part('p', 'hint', {}, texts.deleteHint),
    h(Button, {
      kind: 'danger',
      isBusy,
      onUse: () => perform(account.remove, { question: texts.deleteConfirm, label: texts.deleteButton }),
    }, texts.deleteButton)
  ))
}
