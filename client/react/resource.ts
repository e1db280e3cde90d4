import { useSyncExternalStore } from 'react'
import type { UsherClient } from '../index.ts'
import { useClient } from './context.ts'

/** Something that the server has, as a component sees it. */
export interface Loaded<Data> {
  /** As of the last answer. Undefined until there is one, and without a session. */
  readonly data: Data | undefined
  /** Why the last attempt to load it has failed: an `UsherError`, or the `TypeError` of `fetch`. */
  readonly error: unknown
  /** Whether a request is on its way, the first one included. */
  readonly isLoading: boolean
}

/** What a hook returns. */
export type Used<Data, Actions = object> = Loaded<Data> & {
  /** Asks the server again, which sends the data only if they have changed. Never rejects. */
  reload (): Promise<void>
} & Actions

/** What the server has, how it is read, and what changes it. */
export interface Definition<Data, Actions> {
  load (client: UsherClient, signal: AbortSignal, former: Data | undefined): Promise<Data>
  actions (client: UsherClient, resource: Resource<Data>): Actions
  /** Whether it can be read without a session. */
  isPublic?: true
}

// What a server renders, and a browser before the first answer.
const INITIAL: Loaded<never> = Object.freeze({ data: undefined, error: undefined, isLoading: true })
const NONE: Loaded<never> = Object.freeze({ data: undefined, error: undefined, isLoading: false })

/** What all components of a page that use a hook share: the data of one client, loaded as long as one is mounted. */
export class Resource<Data> {
  readonly #client: UsherClient
  readonly #definition: Definition<Data, unknown>
  readonly #listeners = new Set<() => void>()
  #state: Loaded<Data> = INITIAL
  #aborter: AbortController | undefined
  #leave: (() => void) | undefined
  // Whose data they are.
  #userId: string | undefined

  constructor (client: UsherClient, definition: Definition<Data, unknown>) {
    this.#client = client
    this.#definition = definition
  }

  readonly current = (): Loaded<Data> => this.#state

  readonly subscribe = (listener: () => void): () => void => {
    this.#listeners.add(listener)
    this.#start()
    return () => {
      this.#listeners.delete(listener)
      // Strict Mode unmounts a component and mounts it again at once, for which nothing has to be loaded twice.
      queueMicrotask(() => { if (this.#listeners.size === 0) this.#stop() })
    }
  }

  readonly reload = async (): Promise<void> => {
    this.#aborter?.abort()
    const { signal } = this.#aborter = new AbortController()
    const { load, isPublic } = this.#definition
    if (!this.#state.isLoading) this.#set({ ...this.#state, isLoading: true })
    try {
      if (!isPublic && !await this.#client.session.restore()) return signal.aborted ? undefined : this.#set(NONE)
      if (signal.aborted) return
      const data = await load(this.#client, signal, this.#state.data)
      if (!signal.aborted) this.update(data)
    } catch (error) {
      if (!signal.aborted) this.#set({ data: this.#state.data, error, isLoading: false })
    }
  }

  /** Shows other data. What has the same content stays the same object, for which nothing renders again. */
  update (data: Data): void {
    // An older answer must not follow.
    this.#aborter?.abort()
    const former = this.#state.data
    const isSame = former !== undefined && JSON.stringify(data) === JSON.stringify(former)
    this.#set({ data: isSame ? former : data, error: undefined, isLoading: false })
  }

  /** Loads it again if a component shows it. */
  async refresh (): Promise<void> {
    if (this.#listeners.size > 0) await this.reload()
  }

  #start (): void {
    if (this.#leave) return
    const listen = () => {
      // What belongs to another user is shown no longer.
      this.#set(INITIAL)
      void this.reload()
    }
    const { session } = this.#client
    this.#leave = this.#definition.isPublic ? () => {} : session.subscribe(listen)
    // Another user may have logged in while nothing was shown.
    if (session.current.user?.id !== this.#userId) this.#state = INITIAL
    void this.reload()
  }

  #stop (): void {
    this.#aborter?.abort()
    this.#leave?.()
    this.#leave = undefined
    this.#userId = this.#client.session.current.user?.id
  }

  #set (state: Loaded<Data>): void {
    this.#state = state
    for (const listener of this.#listeners) listener()
  }
}

interface Entry<Data, Actions> { readonly resource: Resource<Data>, readonly actions: Actions }

const entries = new WeakMap<UsherClient, Map<object, Entry<never, unknown>>>()

function entryOf<Data, Actions> (client: UsherClient, definition: Definition<Data, Actions>): Entry<Data, Actions> {
  let ofClient = entries.get(client)
  if (!ofClient) entries.set(client, ofClient = new Map())
  let entry = ofClient.get(definition) as Entry<Data, Actions> | undefined
  if (!entry) {
    const resource = new Resource<Data>(client, definition)
    entry = { resource, actions: definition.actions(client, resource) }
    ofClient.set(definition, entry as never)
  }
  return entry
}

/** Loads something again if a component shows it. */
export const refresh = <Data>(client: UsherClient, definition: Definition<Data, unknown>): Promise<void> =>
  entryOf(client, definition).resource.refresh()

const never = () => () => {}

/**
 * Returns something that the server has, loaded when the first component uses it.
 * @param isNeeded whether it is loaded at all
 */
export function useResource<Data, Actions> (
  definition: Definition<Data, Actions>, given?: UsherClient, isNeeded = true
): Used<Data, Actions> {
  const client = useClient(given)
  const { resource, actions } = entryOf(client, definition)
  const state = useSyncExternalStore(isNeeded ? resource.subscribe : never, resource.current, () => INITIAL)
  return { ...state, reload: resource.reload, ...actions }
}
