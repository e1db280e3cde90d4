import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { unwrap, type components, type UsherClient } from '../index.ts'
import { UsherError } from '../error.ts'
import { usePasskey } from '../passkeys.ts'
import { useClient } from './context.ts'
import { useFactors, type SecondFactor } from './hooks.ts'
import type { Used } from './resource.ts'

type Proof = components['schemas']['StepUp']

export interface StepUpActions {
  /** Whether an action waits for the user to confirm. */
  readonly isNeeded: boolean
  /**
   * Runs an action. If the server wants the user to be authenticated once more, waits for `confirm`, and runs it again.
   * Rejects with the error of the action, and with that of step-up if the user cancels or the component is unmounted.
   */
  run<Result> (action: () => Promise<Result>): Promise<Result>
  /** Confirms with one of `password`, `code`, `recoveryCode`, `credential` and `mail`. Rejects with an `UsherError`. */
  confirm (proof: Proof): Promise<void>
  /** Confirms with a passkey. Rejects with a `DOMException` if the user abandons it. */
  confirmByPasskey (): Promise<void>
  /** Has a code mailed. Returns what belongs to it, for `confirm({ mail: { id, code } })`. */
  requestMail (): Promise<string>
  /** Returns the address at which a provider confirms. The page that comes back has to run the action again. */
  beginProvider (id: string, returnTo?: string): Promise<string>
  cancel (): void
}

/** Returns whether the server wants the user to be authenticated once more. */
export const needsStepUp = (error: unknown): error is UsherError =>
  error instanceof UsherError && error.code === 'STEP_UP_REQUIRED'

interface Waiting { readonly resume: () => void, readonly reject: () => void }

/**
 * Returns what repeats actions after the user has confirmed to be the user, and as `data` what the user can confirm
 * with, once it is needed.
 */
export function useStepUp (given?: UsherClient): Used<SecondFactor, StepUpActions> {
  const client = useClient(given)
  const waiting = useRef<Waiting[]>([])
  const [isNeeded, setNeeded] = useState(false)
  const factors = useFactors(client, isNeeded)

  const settle = useCallback((name: keyof Waiting) => {
    for (const one of waiting.current.splice(0)) one[name]()
  }, [])
  useEffect(() => () => settle('reject'), [settle])

  const actions = useMemo(() => {
    const done = () => { settle('resume'); setNeeded(false) }
    const confirm = async (proof: Proof) => {
      await client.stepUp(proof)
      done()
    }
    return {
      async run<Result> (action: () => Promise<Result>): Promise<Result> {
        for (;;) {
          try {
            return await action()
          } catch (error) {
            if (!needsStepUp(error)) throw error
            await new Promise<void>((resolve, reject) => {
              waiting.current.push({ resume: resolve, reject: () => reject(error) })
              setNeeded(true)
            })
          }
        }
      },
      confirm,
      async confirmByPasskey () {
        await confirm({ credential: await usePasskey(await unwrap(client.post('/api/auth/step-up/options'))) })
      },
      requestMail: () => client.requestStepUpMail(),
      async beginProvider (id: string, returnTo?: string) {
        const body = returnTo === undefined ? {} : { returnTo }
        const init = { params: { path: { id } }, body, credentials: 'include' } as const
        return (await unwrap(client.post('/api/auth/providers/{id}/step-up', init))).url
      },
      cancel () { settle('reject'); setNeeded(false) },
    }
  }, [client, settle])
  return { ...factors, isNeeded, ...actions }
}
