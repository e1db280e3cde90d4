/// <reference lib="dom" />
import { useState, type ReactElement } from 'react'
import { unwrap } from '../index.ts'
import { useProvided } from './context.ts'
import {
  Button, EmailField, Field, Form, h, HostFields, NewPasswordField, part, Status, type CommonProps,
} from './elements.ts'
import { readFields, readValues } from './fields.ts'
import { useFields } from './hooks.ts'
import { format } from './texts.ts'

export interface SignUpProps extends CommonProps {
  /** Is called when the mail with the link is on its way. */
  onSignUp?: (email: string) => void
  /** Where users log in. Default: no link. */
  signInUrl?: string
}

/**
 * A sign-up, which the link in a mail completes: on the page `/sign-up/confirm` of Usher, or on one of the app. The
 * service needs the option `signUp`.
 */
export function SignUp ({ className, onSignUp, signInUrl }: SignUpProps): ReactElement {
  const { client, texts } = useProvided()
  const fields = useFields()
  const [sentTo, setSentTo] = useState<string>()

  async function signUp (form: FormData): Promise<void> {
    const [name, email, password] = ['name', 'email', 'password'].map((name) => String(form.get(name)))
    const body = { ...readValues(readFields(fields), form), name: name!, email: email!, password: password! }
    // The cookie proves to the link that this browser has signed up.
    await unwrap(client.post('/api/auth/sign-up', { body, credentials: 'include' }))
    setSentTo(email)
    onSignUp?.(email!)
  }

  return part('div', 'sign-up', { className },
    sentTo === undefined && h(
      Form, { submit: texts.signUpButton, label: texts.signUpTitle, onSubmit: signUp },
      h(Field, { name: 'name', label: texts.name, more: { autoComplete: 'name', required: true } }),
      h(EmailField),
      h(NewPasswordField, { label: texts.password }),
      h(HostFields, { fields })
    ),
    h(Status, null, sentTo && format(texts.signUpSentTo, { email: sentTo })),
    part('div', 'links', {},
      sentTo !== undefined && h(Button, { kind: 'link', onUse: () => setSentTo(undefined) }, texts.wrongAddress),
      signInUrl && part('a', 'link', { href: signInUrl }, texts.signUpHasAccount)))
}
