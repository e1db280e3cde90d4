import type { components } from './api.ts'
import { readError, UsherError } from './error.ts'
import { sessionCookieOf, timeoutSignal } from './platform.ts'
import { repeat, type RetryOptions } from './retry.ts'
import { connectTabs, createSingle, pageUrl, type Access, type Message, type Organization, type Tabs } from './tabs.ts'

export type User = components['schemas']['User']

/** The state of a session. */
export interface SessionState {
  /** `unknown` until the first login, `restore`, or call that was rejected without a token. */
  readonly state: 'unknown' | 'active' | 'none'
  /** The user who has logged in, as of the last login or refresh. */
  readonly user: User | undefined
  /** The organisation for which calls are sent, with the user's role in it as of the last refresh; absent for none. */
  readonly organization?: Organization | undefined
  /**
   * Why an active session is over: `expired` if it was not by a logout in one of the tabs. Also if it was ended
   * elsewhere.
   */
  readonly reason?: 'logout' | 'expired' | undefined
}

export interface SessionOptions {
  baseUrl: string
  fetch: (request: Request) => Promise<Response>
  /** Takes the place of the session. */
  apiKey?: string | undefined
  /** The organisation for which calls are sent at first. */
  organizationId?: string | undefined
}

// The server accepts a cookie for ten seconds after it was replaced, so a lost response must be repeated soon.
const REFRESH: RetryOptions = { tries: 5, baseMs: 200, maxMs: 2000 }
// A request that hangs must not block the other tabs.
const REFRESH_TIMEOUT_MS = 10_000
const MARGIN_MS = 10_000

/**
 * Keeps the access token in memory, and renews it by the session cookie: once for all calls, and for all tabs of a
 * browser.
 */
export class Session {
  readonly #options: SessionOptions
  readonly #tabs: Tabs<User>
  readonly #listeners = new Set<(state: SessionState) => void>()
  // The tokens of the session by the id of the organisation; null is that for none. Each tab chooses for itself.
  readonly #accesses = new Map<string | null, Access<User>>()
  readonly #renewals = new Map<string | null, Promise<string | undefined>>()
  #organizationId: string | null
  #state: SessionState = { state: 'unknown', user: undefined }
  // Where there is no browser to keep it.
  #cookie: string | undefined
  // What belongs to the code of a mail, where there is no browser to keep a cookie.
  #loginId: string | undefined

  constructor (options: SessionOptions) {
    this.#options = options
    this.#organizationId = options.organizationId ?? null
    const hear = (message: Message<User>) => this.#hear(message)
    this.#tabs = pageUrl === undefined
      ? createSingle()
      : connectTabs(`usher ${new URL(options.baseUrl, pageUrl)}`, hear)
  }

  get current (): SessionState {
    return this.#state
  }

  /** The id of the organisation for which calls are sent, or null. */
  get organizationId (): string | null {
    return this.#organizationId
  }

  /**
   * Calls a function whenever the user or the organisation changes and when the session is over. Returns a function
   * that stops this.
   */
  subscribe (listener: (state: SessionState) => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /**
   * Logs in. Throws an `UsherError`. If its code is `SECOND_FACTOR_REQUIRED`, its `challenge` belongs to
   * `completeLogin`.
   */
  login (credentials: { email: string, password: string }): Promise<User> {
    return this.#authenticate('login', credentials)
  }

  /** Completes a login with the second factor. Throws an `UsherError`. */
  completeLogin (factor: components['schemas']['CompleteLogin']): Promise<User> {
    return this.#authenticate('login/second-factor', factor)
  }

  /**
   * Returns the options for `usePasskey`, whose result `loginWithPasskey` or `completeLogin` takes in this browser.
   * Throws an `UsherError`.
   */
  passkeyOptions (): Promise<components['schemas']['PasskeyRequestOptions']> {
    return this.#send<'PasskeyRequestOptions'>('login/passkey/options')
  }

  /** Logs in with what `usePasskey` has returned. Throws an `UsherError`. */
  loginWithPasskey (credential: components['schemas']['PasskeyLogin']['credential']): Promise<User> {
    return this.#authenticate('login/passkey', { credential })
  }

  /**
   * Requests a mail with a link and a code to log in. It says nothing about whether the address has an account. Throws
   * an `UsherError`.
   */
  async requestLoginMail (email: string): Promise<void> {
    const { loginId } = await this.#send<'LoginMailReply'>('login/mail', { email, cookie: pageUrl !== undefined })
    this.#loginId = loginId
  }

  /**
   * Logs in with the `token` of the link of such a mail, or with its `code`, in the browser or program that has
   * requested it. Throws an `UsherError`, like `login`.
   */
  loginByMail (proof: { token: string } | { code: string }): Promise<User> {
    const id = this.#loginId === undefined ? {} : { loginId: this.#loginId }
    return this.#authenticate('login/mail/confirm', { ...id, ...proof })
  }

  /**
   * Requests a mail with a code to step up. Returns the `id` for `stepUp({ mail: { id, code } })`. Throws an
   * `UsherError`.
   */
  async requestStepUpMail (): Promise<string> {
    return (await this.#send<'StepUpMailReply'>('step-up/mail', undefined, await this.token())).id
  }

  /** Confirms that it is the user, after a call has got `STEP_UP_REQUIRED`. Throws an `UsherError`. */
  async stepUp (proof: components['schemas']['StepUp']): Promise<User> {
    return this.#authenticate('step-up', proof, await this.token())
  }

  /**
   * Ends the session on every node and in every tab. Throws an `UsherError`, and then the session may not have ended.
   */
  logout (): Promise<void> {
    return this.#tabs.exclusively(async () => {
      // A lost response is repeated. The session has ended then, which the server reports by 401.
      const response = await this.#insist(() => this.#post('logout', undefined, this.#valid()?.token))
      if (!response.ok && response.status !== 401) throw await readError(response)
      this.#over('logout')
    })
  }

  /**
   * Continues the session of the browser's cookie, for example after a page was loaded. Returns its user, or undefined
   * without one.
   */
  async restore (): Promise<User | undefined> {
    if (this.#state.state === 'unknown') await this.renew()
    return this.#state.user
  }

  /**
   * Returns the API key, or a token that has not expired, or undefined if nobody has logged in. Refreshes the session
   * if necessary.
   */
  async token (): Promise<string | undefined> {
    if (this.#options.apiKey !== undefined) return this.#options.apiKey
    return this.#state.state === 'active' ? this.#valid()?.token ?? this.renew() : undefined
  }

  /**
   * Refreshes the session, unless another tab has done so. Returns the new token, or undefined if there is no session.
   * If the user is no member of the organisation any more, it is a token for none, and so are later ones. Throws an
   * `UsherError`, or the `TypeError` of `fetch` if the server cannot be reached: then the session continues.
   * @param rejected the token that the server has rejected
   */
  async renew (rejected?: string): Promise<string | undefined> {
    // A key that was rejected stays rejected.
    if (this.#state.state === 'none' || this.#options.apiKey !== undefined) return undefined
    const valid = this.#valid()
    if (valid && valid.token !== rejected) return valid.token
    const id = this.#organizationId
    return this.#renew(id, rejected).catch((error: unknown) => {
      if (!(error instanceof UsherError && error.code === 'ORGANIZATION_NOT_FOUND')) throw error
      if (this.#organizationId === id) this.#choose(null)
      return this.renew()
    })
  }

  /**
   * Sends calls for an organisation from now on, in this tab, or for none. Throws an `UsherError` if the user is no
   * member, and then nothing changes. Without a session, it only says for which organisation the next one is.
   */
  async setOrganization (id: string | null): Promise<void> {
    if (this.#options.apiKey !== undefined) throw new TypeError('An API key is for the organisation that it was created for')
    if (this.#state.state !== 'none' && !this.#valid(id)) await this.#renew(id, undefined)
    this.#choose(id)
  }

  #renew (id: string | null, rejected: string | undefined): Promise<string | undefined> {
    const renewal = this.#renewals.get(id) ??
      this.#tabs.exclusively(() => this.#refresh(id, rejected)).finally(() => this.#renewals.delete(id))
    this.#renewals.set(id, renewal)
    return renewal
  }

  close (): void {
    this.#tabs.close()
    this.#listeners.clear()
  }

  async #refresh (organizationId: string | null, rejected: string | undefined): Promise<string | undefined> {
    // Another tab may have refreshed the session while this one waited for its turn.
    this.#tabs.tell({ kind: 'ask', rejected, organizationId })
    await this.#tabs.answered()
    const valid = this.#valid(organizationId)
    if (valid && valid.token !== rejected) return valid.token
    if (this.#state.state === 'none') return undefined
    const body = organizationId === null ? undefined : JSON.stringify({ organizationId })
    const response = await this.#insist(() => this.#post('refresh', body))
    if (response.ok) return (await this.#accept(response)).token
    if (response.status !== 401) throw await readError(response)
    this.#over('expired')
    return undefined
  }

  #authenticate (name: string, body: object, token?: string): Promise<User> {
    return this.#tabs.exclusively(async () => {
      const response = await this.#post(name, JSON.stringify(body), token)
      if (!response.ok) throw await readError(response)
      // They are of another session, or say that the user was authenticated longer ago.
      this.#accesses.clear()
      return (await this.#accept(response)).user
    })
  }

  async #send<Name extends keyof components['schemas']> (
    name: string, body?: object, token?: string
  ): Promise<components['schemas'][Name]> {
    const response = await this.#post(name, body && JSON.stringify(body), token)
    if (!response.ok) throw await readError(response)
    return await response.json() as components['schemas'][Name]
  }

  #insist (send: () => Promise<Response>): Promise<Response> {
    return repeat(send, REFRESH, timeoutSignal(REFRESH_TIMEOUT_MS))
  }

  async #post (name: string, body?: string, token?: string): Promise<Response> {
    const headers = new Headers(body === undefined ? {} : { 'Content-Type': 'application/json' })
    if (token) headers.set('Authorization', `Bearer ${token}`)
    if (this.#cookie) headers.set('Cookie', this.#cookie)
    const { baseUrl, fetch } = this.#options
    const signal = timeoutSignal(REFRESH_TIMEOUT_MS)
    const init: RequestInit = { method: 'POST', headers, credentials: 'include', signal, ...body && { body } }
    const response = await fetch(new Request(`${baseUrl}/api/auth/${name}`, init))
    this.#cookie = sessionCookieOf(response) ?? this.#cookie
    return response
  }

  async #accept (response: Response): Promise<Access<User>> {
    const { token, expiresIn, user, organization = null } = await response.json() as components['schemas']['LoginReply']
    const lifetime = expiresIn * 1000
    const access = { token, expiresAt: Date.now() + lifetime - Math.min(MARGIN_MS, lifetime / 10), user, organization }
    this.#set(access)
    this.#tabs.tell({ kind: 'access', access })
    return access
  }

  #valid (organizationId = this.#organizationId): Access<User> | undefined {
    const access = this.#accesses.get(organizationId)
    return access && access.expiresAt > Date.now() ? access : undefined
  }

  #set (access: Access<User>): void {
    const { user, organization } = access
    if (this.#state.user && this.#state.user.id !== user.id) {
      this.#accesses.clear()
      this.#organizationId = this.#options.organizationId ?? null
    }
    this.#accesses.set(organization?.id ?? null, access)
    this.#show(user)
  }

  #choose (organizationId: string | null): void {
    this.#organizationId = organizationId
    if (this.#state.user) this.#show(this.#state.user)
  }

  #show (user: User): void {
    const organization = this.#accesses.get(this.#organizationId)?.organization
    this.#change({ state: 'active', user, ...organization && { organization } })
  }

  #over (reason: 'logout' | 'expired'): void {
    this.#tabs.tell({ kind: 'end', reason })
    this.#end(reason)
  }

  #end (reason: 'logout' | 'expired'): void {
    this.#accesses.clear()
    this.#organizationId = this.#options.organizationId ?? null
    this.#cookie = undefined
    // Without a session before, nothing is over.
    const wasActive = this.#state.state === 'active'
    if (this.#state.state !== 'none') this.#change({ state: 'none', user: undefined, ...wasActive && { reason } })
  }

  #change (state: SessionState): void {
    const keyOf = ({ state, user, organization }: SessionState) =>
      `${state} ${user?.id} ${organization?.id} ${organization?.role}`
    const isSame = keyOf(state) === keyOf(this.#state)
    this.#state = state
    if (!isSame) for (const listener of this.#listeners) listener(state)
  }

  #hear (message: Message<User>): void {
    switch (message.kind) {
      case 'access': return this.#set(message.access)
      case 'end': return this.#end(message.reason)
      case 'ask': {
        const access = this.#valid(message.organizationId)
        if (access && access.token !== message.rejected) this.#tabs.tell({ kind: 'access', access })
      }
    }
  }
}
