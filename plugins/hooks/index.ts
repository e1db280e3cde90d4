import type { Readable } from 'node:stream'
import fp from 'fastify-plugin'
import postgres from 'postgres'
import { copyRow } from '../../db/tables/row.ts'
import type { Database } from '../../db/tables/index.ts'
import { ClientDisconnected, InternalError, InvalidInput, UsherError } from '../../schema/http/errors.ts'
import { inTime } from '../../schema/runtime/in-time.ts'
import {
  HookTimeout, type HookContext, type HookName, type Hooks, type ScannedUpload, type TransactionContext,
} from '../../schema/options/hooks.ts'
import type { Options } from '../../schema/options/options.ts'
import { REJECTED } from '../../schema/options/page-texts.ts'
import { withoutEmpty } from '../../schema/fields/fields.ts'
import type { Caller } from '../access/caller.ts'
import { runInTransaction } from './transaction.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherHooks: HookRunner
  }
}

// `publish` runs the one that gets bytes.
type Before = Exclude<Extract<HookName, `before${string}`>, 'beforeUploadPublish'>
type During = Extract<HookName, `on${string}`>
type Input<Name extends HookName> = Parameters<NonNullable<Hooks[Name]>>[0]
type Extra<Name extends HookName> = Omit<Parameters<NonNullable<Hooks[Name]>>[1], keyof TransactionContext>
type AnyHook = (input: unknown, context: object) => unknown

export type HookRunner = ReturnType<typeof createHooks>

function createHooks ({ hooks, hookSeconds, userFields }: Options) {
  const hookOf = (name: HookName) => hooks[name] as AnyHook | undefined
  // A hook gets a copy of what is stored, as other readers see it: fields of the host without a value are absent.
  const show = <Value extends object>(value: Value) => copyRow(withoutEmpty(userFields, value))
  const showMembers = (members: object = {}) =>
    Object.fromEntries(Object.entries(members).map(([name, value]) => [name, show(value as object)]))
  // All hooks of an operation share its deadline, which is set when the first one begins.
  const deadlines = new WeakMap<Caller, { at: number, controller: AbortController }>()

  // Runs a hook with a copy of its input, which it may modify.
  async function run (name: HookName, caller: Caller, call: (context: HookContext) => unknown): Promise<unknown> {
    const deadline =
      deadlines.get(caller) ?? { at: performance.now() + hookSeconds * 1000, controller: new AbortController() }
    deadlines.set(caller, deadline)
    const { actor, via } = caller
    const work = (async () => call({ actor, via, signal: deadline.controller.signal }))()
    try {
      return await inTime(work, Math.max(0, deadline.at - performance.now()), () => {
        deadline.controller.abort()
        return new HookTimeout()
      })
    } catch (error) {
      throw reportFailure(error, name, caller)
    }
  }

  function reportFailure (error: unknown, name: HookName, { via, log }: Caller): Error {
    const failure = toFailure(error, name)
    if (failure.statusCode >= 500 && via === 'api') {
      log.error({ err: failure.cause ?? failure, hook: name }, 'A hook of the host failed')
    }
    return failure
  }

  function garbage (name: HookName, problem: string, cause?: unknown): Error {
    return new InternalError({ cause: new Error(`usher: the hook ${name} returned ${problem}`, { cause }) })
  }

  return {
    /** Returns whether the host has a hook of this name. */
    has: (name: HookName): boolean => hooks[name] !== undefined,

    /**
     * Runs a hook before a change. Returns the input, or what the hook has made of it. Throws the error with which the
     * hook rejects it, `HookTimeout`, `InternalError` if the hook fails or returns an invalid input, and
     * `ClientDisconnected`.
     *
     * @param parse validates what the hook returns, and throws if it is invalid
     */
    async change<Name extends Before> (
      name: Name, input: Input<Name>, caller: Caller, parse: (input: unknown) => Input<Name>, extra?: Extra<Name>
    ): Promise<Input<Name>> {
      const hook = hookOf(name)
      if (!hook) return input
      const returned =
        await run(name, caller, (context) => hook(structuredClone(input), { ...context, ...showMembers(extra) }))
      if (caller.destroyed) throw new ClientDisconnected()
      if (returned === undefined) return input
      try {
        return parse(returned)
      } catch (error) {
        throw garbage(name, `an invalid input: ${(error as Error).message}`, error)
      }
    },

    /** Runs a hook that cannot change anything. The errors are those of `change`. */
    async check<Name extends Before> (name: Name, input: Input<Name>, caller: Caller): Promise<void> {
      const hook = hookOf(name)
      if (!hook) return
      const returned = await run(name, caller, (context) => hook(show(input), context))
      if (returned !== undefined) throw garbage(name, 'a value, although it can change nothing')
      if (caller.destroyed) throw new ClientDisconnected()
    },

    /**
     * Has the host look at the bytes of an upload. They have a time limit of their own, at which `signal` aborts: stop
     * waiting then. Throws the errors of `check`, except those about time and the client, who may ask for the result
     * later.
     */
    async publish (bytes: Readable, upload: ScannedUpload, caller: Caller, signal: AbortSignal): Promise<void> {
      const { actor, via } = caller
      const name = 'beforeUploadPublish'
      const work = (async (): Promise<unknown> => hooks[name]?.(bytes, { ...upload }, { actor, via, signal }))()
      const returned = await work.catch((error: unknown) => { throw reportFailure(error, name, caller) })
      if (returned !== undefined) throw garbage(name, 'a value, although it can change nothing')
    },

    /**
     * Returns a function that runs a hook inside a transaction, or undefined if there is no such hook. If it throws,
     * roll the transaction back.
     */
    during<Name extends During> (name: Name, caller: Caller): ((trx: Database, value: Input<Name>) => Promise<void>) |
      undefined {
      const hook = hookOf(name)
      if (!hook) return undefined
      return async (trx, value) => {
        const remaining = () =>
          (deadlines.get(caller)?.at ?? performance.now() + hookSeconds * 1000) - performance.now()
        await runInTransaction(trx, remaining, async (sql) => {
          await run(name, caller, (context) => hook(show(value), { ...context, sql }))
        }).catch((error) => {
          // That of a statement which the hook has not waited for, or whose error it has caught. It says nothing about
          // the statement of the change, such as that an address is taken.
          throw error instanceof postgres.PostgresError ? reportFailure(error, name, caller) : error
        })
      }
    },
  }
}

interface Failure extends Error { statusCode: number }

// Returns the error of the response. Errors of Usher that tell the client to try again, such as that of a lost
// database, remain.
function toFailure (thrown: unknown, name: HookName): Failure {
  const { statusCode, message, code } =
    (typeof thrown === 'object' && thrown !== null ? thrown : {}) as Partial<Record<string, unknown>>
  if (thrown instanceof UsherError && statusCode === 503) return thrown as Failure
  const isRejection = Number.isInteger(statusCode) && (statusCode as number) >= 400 && (statusCode as number) < 500 &&
    typeof message === 'string'
  if (!isRejection) {
    const cause = thrown instanceof Error
      ? thrown
      : new Error(`usher: the hook ${name} threw a value that is no error`, { cause: thrown })
    return new InternalError({ cause }) as Failure
  }
  const { errors } = thrown as { errors?: unknown }
  if (statusCode === 400 && Array.isArray(errors) && errors.every((each) => typeof each === 'string')) {
    return new InvalidInput(...errors)
  }
  return Object.assign(new Error(message as string, { cause: thrown }), {
    statusCode: statusCode as number,
    code: typeof code === 'string' ? code : REJECTED,
  })
}

/** Runs the hooks of the host (contract 12.4). */
export default fp(async function hooks (app) {
  app.decorate('usherHooks', createHooks(app.usherOptions))
}, { name: 'usher-hooks', dependencies: ['usher-options'] })
