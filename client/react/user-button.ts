/// <reference lib="dom" />
import { useEffect, useId, useRef, useState, type KeyboardEvent, type ReactElement, type ReactNode } from 'react'
import { useProvided } from './context.ts'
import { Alert, Button, failureText, part, useAction, type CommonProps } from './elements.ts'
import { useProfile } from './hooks.ts'
import { useSession } from './session.ts'
import { format } from './texts.ts'

export interface UserButtonProps extends CommonProps {
  /** Where users log in. Default: nothing is shown to visitors. */
  signInUrl?: string
  /** The page with `<Account>`. Default: no link. */
  accountUrl?: string
  /** More links and buttons of the menu. */
  children?: ReactNode
}

/** A button with the initials of the user, which opens a menu to go to the account and to log out. */
export function UserButton ({ className, signInUrl, accountUrl, children }: UserButtonProps): ReactElement {
  const { client, texts } = useProvided()
  const { state, user } = useSession()
  // The session knows the user as of the login.
  const { data = user } = useProfile()
  const [isOpen, setOpen] = useState(false)
  const { act, isBusy, error } = useAction()
  const root = useRef<HTMLDivElement>(null)
  const id = useId()

  useEffect(() => {
    if (!isOpen) return
    const close = ({ target }: Event) => { if (!root.current?.contains(target as Node)) setOpen(false) }
    // Also when the focus leaves it.
    const events = ['pointerdown', 'focusin'] as const
    for (const event of events) document.addEventListener(event, close)
    return () => { for (const event of events) document.removeEventListener(event, close) }
  }, [isOpen])

  function onKeyDown ({ key }: KeyboardEvent): void {
    if (key !== 'Escape' || !isOpen) return
    setOpen(false)
    root.current?.querySelector('button')?.focus()
  }

  if (!data) {
    return part('div', 'user-button', { className },
      state === 'none' && signInUrl && part('a', 'link', { href: signInUrl }, texts.logIn))
  }
  const { name, email } = data
  return part('div', 'user-button', { className, ref: root, onKeyDown },
    part('button', 'avatar', {
      type: 'button',
      'aria-label': format(texts.accountMenu, { name }),
      'aria-expanded': isOpen,
      'aria-controls': isOpen ? id : undefined,
      onClick: () => setOpen(!isOpen),
    }, initialsOf(name)),
    isOpen && part('div', 'menu', { id },
      part('p', 'name', {}, name),
      email && part('p', 'hint', {}, email),
      accountUrl && part('a', 'link', { href: accountUrl }, texts.accountTitle),
      children,
      Button({ onUse: () => act(() => client.logout()), isBusy, children: texts.logOut }),
      Alert({ children: error === undefined ? '' : failureText(error, texts) })))
}

const initialsOf = (name: string): string =>
  name.split(/\s+/).filter(Boolean).map(([first]) => first!.toUpperCase()).filter((_, index, all) =>
    index === 0 || index === all.length - 1).join('')
