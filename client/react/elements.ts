/// <reference lib="dom" />
import {
  createContext, createElement, useContext, useEffect, useId, useLayoutEffect, useRef, useState,
  useSyncExternalStore,
  type FormEvent, type ReactElement, type ReactNode,
} from 'react'
import { UsherError } from '../error.ts'
import { useProvided } from './context.ts'
import { readFields, type FieldsSchema, type HostField } from './fields.ts'
import type { Texts } from './texts.ts'

// The modules of components are written without JSX, which Node.js does not remove with the types.
export const h = createElement

/** Creates an element with a name for styles. */
export const part = (
  tag: string, name: string, props: Readonly<Record<string, unknown>> = {}, ...children: ReactNode[]
): ReactElement => h(tag, { 'data-usher': name, ...props }, ...children)

/** What every component takes. */
export interface CommonProps {
  /** For the outermost element. */
  className?: string
}

/** What a failure says, as a whole and by the field that it is about. */
interface Failure { readonly text: string, readonly fields: Readonly<Record<string, string>> }

const NO_FAILURE: Failure = { text: '', fields: {} }

// The fields of failures that name none.
const FIELDS: Readonly<Record<string, string>> = { EMAIL_TAKEN: 'email', WRONG_PASSWORD: 'currentPassword' }

/** Returns whether the user has abandoned a ceremony. The browser does not say whether there was no passkey either. */
export const isAbandoned = (error: unknown): boolean =>
  ['NotAllowedError', 'AbortError'].includes((error as { name?: string } | undefined)?.name ?? '')

/** Returns what a failure says to the user. */
export function failureText (error: unknown, texts: Texts): string {
  if (error instanceof UsherError) return texts[(error.code ?? '') as 'CODE'] ?? error.message
  return error instanceof TypeError ? texts.unreachable : texts.failed
}

function failureOf (error: unknown, texts: Texts, names: readonly string[]): Failure {
  const fields: Record<string, string> = {}
  const others: string[] = []
  const ofCode = error instanceof UsherError ? FIELDS[error.code ?? ''] : undefined
  const sentences = error instanceof UsherError && error.status === 400 && error.code === undefined
    ? error.problems
    : [failureText(error, texts)]
  for (const sentence of sentences) {
    // A sentence about an input begins with its name.
    const name = ofCode ?? /^\w+/.exec(sentence)?.[0] ?? ''
    if (names.includes(name)) fields[name] ??= sentence
    else others.push(sentence)
  }
  return { text: others.join('. '), fields }
}

/** Runs actions one at a time, and says whether one runs and why the last one has failed. */
export function useAction () {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const [isMounted] = useState(() => ({ current: false }))
  const running = useRef(false)
  useEffect(() => {
    isMounted.current = true
    return () => { isMounted.current = false }
  }, [isMounted])
  async function act (action: () => Promise<unknown>): Promise<void> {
    if (running.current) return
    running.current = true
    setBusy(true)
    setError(undefined)
    try {
      await action()
    } catch (error) {
      if (isMounted.current) setError(error)
    } finally {
      running.current = false
      if (isMounted.current) setBusy(false)
    }
  }
  return { act, isBusy, error }
}

interface ButtonProps {
  children?: ReactNode
  onUse: () => unknown
  isBusy?: boolean
  /** What it is about, for those who do not see what it stands beside. */
  of?: string | undefined
  kind?: string
  more?: object
}

/** A button that says what it does, and to what. */
export const Button = ({ children, onUse, isBusy, of, kind = 'button', more }: ButtonProps): ReactElement =>
  part('button', kind, {
    type: 'button',
    // Unlike `disabled`, this keeps the focus.
    ...isBusy && { 'aria-busy': true, 'aria-disabled': true },
    ...of !== undefined && { 'aria-label': `${String(children)}: ${of}` },
    onClick: () => { if (!isBusy) onUse() },
    ...more,
  }, children)

/** Says why something has failed, at once to those who use a screen reader. */
export const Alert = ({ children }: { children?: ReactNode }): ReactElement | null =>
  children ? part('p', 'alert', { role: 'alert' }, children) : null

/** Says what has happened. It exists before, otherwise it would not be read. */
export const Status = ({ children }: { children?: ReactNode }): ReactElement =>
  part('p', 'status', { role: 'status' }, children)

const FormContext = createContext<Failure>(NO_FAILURE)

export interface FormProps {
  /** The text of the button. */
  submit: string
  /** The form is emptied when it has succeeded. */
  onSubmit: (values: FormData) => Promise<unknown>
  children?: ReactNode
  /** Beside the button. */
  others?: ReactNode
  label?: string
  name?: string
}

/** A form that shows its failures at its fields, and sends once at a time. */
export function Form ({ submit, onSubmit, children, others, label, name = 'form' }: FormProps): ReactElement {
  const { texts } = useProvided()
  const { act, isBusy, error } = useAction()
  const form = useRef<HTMLFormElement>(null)
  const names = useRef<string[]>([])
  const failure = error === undefined ? NO_FAILURE : failureOf(error, texts, names.current)

  useEffect(() => {
    if (error !== undefined) form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus()
  }, [error])

  function send (event: FormEvent<HTMLFormElement>): void {
    event.preventDefault()
    const element = event.currentTarget
    names.current = Array.from(element.elements, (field) => (field as HTMLInputElement).name)
    const values = new FormData(element)
    void act(() => onSubmit(values))
  }

  return h(FormContext.Provider, { value: failure }, part(
    'form', name, { ref: form, onSubmit: send, 'aria-label': label },
    h(Alert, null, failure.text),
    children,
    part('div', 'actions', {},
      part('button', 'submit', { type: 'submit', ...isBusy && { 'aria-busy': true, 'aria-disabled': true } }, submit),
      others)
  ))
}

export interface FieldProps {
  name: string
  label: string
  hint?: string | undefined
  /** `lines` is a text of several lines. */
  kind?: HostField['kind']
  options?: readonly (string | readonly [value: string, label: string])[]
  /** Attributes of the element, such as `type`, `autoComplete` and `defaultValue`. */
  more?: Readonly<Record<string, unknown>>
}

/** A field of a form with its label, hint and failure. */
export function Field ({ name, label, hint, kind = 'text', options = [], more }: FieldProps): ReactElement {
  const id = useId()
  const failure = useContext(FormContext).fields[name]
  const describedBy = [hint && `${id}-hint`, failure && `${id}-error`].filter(Boolean).join(' ')
  const props = {
    id,
    name,
    ...describedBy !== '' && { 'aria-describedby': describedBy },
    ...failure && { 'aria-invalid': true },
    ...more,
  }
  const caption = part('label', 'label', { htmlFor: id }, label)
  const below = [
    hint && part('p', 'hint', { key: 'hint', id: `${id}-hint` }, hint),
    failure && part('p', 'error', { key: 'error', id: `${id}-error`, role: 'alert' }, failure),
  ]
  if (kind === 'boolean') {
    return part('div', 'check', {}, part('input', 'checkbox', { type: 'checkbox', ...props }), caption, below)
  }
  const element = kind === 'choice'
    ? part('select', 'select', props, options.map((option) => {
      const [value, text] = typeof option === 'string' ? [option, option] : option
      return h('option', { key: value, value }, text)
    }))
    : part(kind === 'lines' ? 'textarea' : 'input', 'input', props)
  return part('div', 'field', {}, caption, element, below)
}

/** The fields of the host that the user may write. */
export function HostFields ({ fields, values = {} }: {
  fields: FieldsSchema, values?: Readonly<Record<string, unknown>>
}): ReactElement {
  return h(
    'div', { 'data-usher': 'fields' },
    readFields(fields).map(({ name, label, hint, kind, options, attributes, preset }) => {
      const value = values[name] ?? preset
      const given = kind === 'boolean' ? { defaultChecked: value === true } : { defaultValue: value ?? '' }
      // Without a value and a default, none is chosen.
      const all = kind === 'choice' && preset === undefined ? [['', '–'] as const, ...options] : options
      return h(Field, { key: name, name, label, hint, kind, options: all, more: { ...attributes, ...given } })
    })
  )
}

/** The field for an address of somebody who logs in. */
export const EmailField = ({ more }: { more?: object }): ReactElement => h(Field, {
  name: 'email',
  label: useProvided().texts.email,
  more: { type: 'email', autoComplete: 'username', autoCapitalize: 'none', spellCheck: false, required: true, ...more },
})

/** The field for a password that the user has. */
export const PasswordField = ({ name = 'password', label }: { name?: string, label?: string }): ReactElement =>
  h(Field, {
    name,
    label: label ?? useProvided().texts.password,
    more: { type: 'password', autoComplete: 'current-password', required: true },
  })

/** The field for a new password, with its rules. */
export const NewPasswordField = ({ label }: { label: string }): ReactElement => h(Field, {
  name: 'password',
  label,
  hint: useProvided().texts.passwordRules,
  more: { type: 'password', autoComplete: 'new-password', required: true },
})

/** The field for a code. */
export const CodeField = ({ name = 'code', label, hint, digits = true }: {
  name?: string, label: string, hint: string, digits?: boolean
}): ReactElement => h(Field, {
  name,
  label,
  hint,
  more: {
    ...digits ? { inputMode: 'numeric', autoComplete: 'one-time-code' } : { autoComplete: 'off' },
    autoCapitalize: 'none',
    spellCheck: false,
    required: true,
  },
})

/** A dialog that is open as long as it is rendered. `onClose` is called when the user closes it. */
export function Dialog ({ title, onClose, children }: {
  title: string, onClose: () => void, children?: ReactNode
}): ReactElement {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  // Before the element is removed, so that the focus returns to where it was.
  useLayoutEffect(() => {
    const element = dialog.current
    element?.showModal()
    return () => element?.close()
  }, [])
  const cancel = (event: { preventDefault (): void }) => { event.preventDefault(); onClose() }
  // Strict Mode closes it and opens it again.
  const closed = () => { if (!dialog.current?.open) onClose() }
  return part('dialog', 'dialog', { ref: dialog, 'aria-labelledby': id, onCancel: cancel, onClose: closed },
    part('h2', 'title', { id }, title), children)
}

const subscribeNever = () => () => {}

/** Returns whether this browser has passkeys. A server renders as one without. */
export const usePasskeySupport = (): boolean => useSyncExternalStore(subscribeNever, hasPasskeys, () => false)

// Pages that were not loaded by https have none, apart from those of this machine.
const hasPasskeys = (): boolean => isSecureContext && typeof PublicKeyCredential === 'function'
