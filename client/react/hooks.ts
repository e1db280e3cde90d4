/// <reference lib="dom" />
import { unwrap, type components, type UsherClient } from '../index.ts'
import { UsherError } from '../error.ts'
import { createPasskey } from '../passkeys.ts'
import { pageUrl } from '../tabs.ts'
import { useProvided } from './context.ts'
import type { FieldsSchema } from './fields.ts'
import { refresh, useResource, type Definition, type Used } from './resource.ts'
import { uploadFile, type UploadOptions } from './upload.ts'

type Schemas = components['schemas']
export type SessionRecord = Schemas['Session']
export type Passkey = Schemas['Passkey']
export type SecondFactor = Schemas['SecondFactor']
export type ApiKey = Schemas['ApiKey']
export type CreatedApiKey = Schemas['CreatedApiKey']
export type FileRecord = Schemas['UploadRecord']
export type FileLink = Schemas['UploadLink']
export type Identity = Schemas['Identity']
export type Provider = Schemas['Provider']
export type SignInSettings = Schemas['SignInSettings']
export type Profile = Schemas['User']

const define = <Data, Actions>(definition: Definition<Data, Actions>): Definition<Data, Actions> => definition

/** What somebody else has removed already is removed. */
export async function ignoreMissing (call: PromiseLike<{ response: Response, error?: unknown }>): Promise<void> {
  const result = await call
  if (result.response.status !== 404) await unwrap(result)
}

export interface SessionActions {
  /** Ends a session. If it is this one, logs out. */
  end (id: string): Promise<void>
  /** Ends all sessions of the user but this one. */
  endOthers (): Promise<void>
}

const sessions = define<SessionRecord[], SessionActions>({
  load: (client, signal) => unwrap(client.get('/api/auth/sessions', { signal })),
  actions: (client, resource) => ({
    async end (id) {
      if (resource.current().data?.some((session) => session.id === id && session.current)) return client.logout()
      await ignoreMissing(client.delete('/api/auth/sessions/{id}', { params: { path: { id } } }))
      await resource.refresh()
    },
    async endOthers () {
      await unwrap(client.delete('/api/auth/sessions'))
      await resource.refresh()
    },
  }),
})

/** Returns the sessions of the user, newest first. */
export const useSessions = (client?: UsherClient): Used<SessionRecord[], SessionActions> =>
  useResource(sessions, client)

export interface PasskeyActions {
  /** Lets the browser create a passkey. Needs step-up. Rejects with a `DOMException` if the user abandons it. */
  add (name?: string): Promise<Passkey>
  rename (id: string, name: string): Promise<void>
  /** Needs step-up. */
  remove (id: string): Promise<void>
}

const passkeys = define<Passkey[], PasskeyActions>({
  load: (client, signal) => unwrap(client.get('/api/auth/passkeys', { signal })),
  actions: (client, resource) => {
    const changed = () => Promise.all([resource.refresh(), refresh(client, secondFactor)])
    return {
      async add (name) {
        const credential = await createPasskey(await unwrap(client.post('/api/auth/passkeys/options')))
        const body = { credential, ...name !== undefined && { name } }
        const passkey = await unwrap(client.post('/api/auth/passkeys', { body }))
        await changed()
        return passkey
      },
      async rename (id, name) {
        await unwrap(client.patch('/api/auth/passkeys/{id}', { params: { path: { id } }, body: { name } }))
        await resource.refresh()
      },
      async remove (id) {
        await ignoreMissing(client.delete('/api/auth/passkeys/{id}', { params: { path: { id } } }))
        await changed()
      },
    }
  },
})

/** Returns the passkeys of the user, newest first. */
export const usePasskeys = (client?: UsherClient): Used<Passkey[], PasskeyActions> => useResource(passkeys, client)

export interface SecondFactorActions {
  /** Begins to set up an authenticator app: `secret`, `uri`, and `qrCode` as SVG. Needs step-up. */
  startTotp (): Promise<Schemas['NewTotp']>
  /** Sets the app up with a code of it. Returns the recovery codes, which are shown once. Ends all other sessions. */
  confirmTotp (code: string): Promise<string[]>
  /** Removes the app and the recovery codes. Needs step-up. */
  removeTotp (): Promise<void>
  /** Replaces the recovery codes. Needs step-up. */
  createRecoveryCodes (): Promise<string[]>
}

const secondFactor = define<SecondFactor, { factor: SecondFactorActions, password: PasswordActions }>({
  load: (client, signal) => unwrap(client.get('/api/auth/second-factor', { signal })),
  actions: (client, resource) => ({
    factor: {
      startTotp: () => unwrap(client.post('/api/auth/totp')),
      async confirmTotp (code) {
        const { recoveryCodes } = await unwrap(client.post('/api/auth/totp/confirm', { body: { code } }))
        // A token that says how the user was authenticated.
        await client.session.renew(await client.session.token())
        await Promise.all([resource.refresh(), refresh(client, sessions)])
        return recoveryCodes
      },
      async removeTotp () {
        await ignoreMissing(client.delete('/api/auth/totp'))
        await resource.refresh()
      },
      async createRecoveryCodes () {
        const { recoveryCodes } = await unwrap(client.post('/api/auth/recovery-codes'))
        await resource.refresh()
        return recoveryCodes
      },
    },
    password: {
      async change (currentPassword, password) {
        await unwrap(client.put('/api/auth/password', { body: { currentPassword, password } }))
        await refresh(client, sessions)
      },
      async requestReset (email) {
        await unwrap(client.post('/api/auth/password-reset', { body: { email } }))
      },
    },
  }),
})

/** Returns what the user can prove to be the user with. */
export function useSecondFactor (client?: UsherClient): Used<SecondFactor, SecondFactorActions> {
  const { factor, password, ...rest } = useResource(secondFactor, client)
  return { ...rest, ...factor }
}

/** Returns the same without its actions, and loads it while it is needed. */
export function useFactors (client: UsherClient | undefined, isNeeded: boolean): Used<SecondFactor> {
  const { factor, password, ...rest } = useResource(secondFactor, client, isNeeded)
  return rest
}

export interface PasswordActions {
  /** Changes the password, and ends all other sessions. Needs step-up if the user has a second factor. */
  change (currentPassword: string, password: string): Promise<void>
  /** Has a link mailed with which a password can be set, if the address has an account. */
  requestReset (email: string): Promise<void>
}

/** Returns whether the user has a password. */
export function usePassword (client?: UsherClient): Used<boolean, PasswordActions> {
  const { factor, password, data, ...rest } = useResource(secondFactor, client)
  return { ...rest, data: data?.password, ...password }
}

export interface ApiKeyActions {
  /** Creates a key. Its `key` is shown by no other response. Needs step-up. */
  create (key: Schemas['CreateApiKey']): Promise<CreatedApiKey>
  /** @param options `revokeLinks`: whether links to files that were created with it are revoked */
  remove (id: string, options?: { revokeLinks?: boolean }): Promise<void>
}

const apiKeys = define<ApiKey[], ApiKeyActions>({
  load: (client, signal) => unwrap(client.get('/api/auth/keys', { signal })),
  actions: (client, resource) => ({
    async create (body) {
      const created = await unwrap(client.post('/api/auth/keys', { body }))
      await resource.refresh()
      return created
    },
    async remove (id, query = {}) {
      await ignoreMissing(client.delete('/api/auth/keys/{id}', { params: { path: { id }, query } }))
      await resource.refresh()
    },
  }),
})

/** Returns the API keys of the user, newest first. */
export const useApiKeys = (client?: UsherClient): Used<ApiKey[], ApiKeyActions> => useResource(apiKeys, client)

export interface FileActions {
  /** Uploads a file. `onProgress` is called with the part that is sent, from 0 to 1. */
  upload (file: Blob, options?: UploadOptions): Promise<FileRecord>
  update (id: string, changes: Schemas['PatchUpload']): Promise<FileRecord>
  remove (id: string): Promise<void>
  /** Returns the links to a file that work, newest first. Their secrets are shown once. */
  links (id: string): Promise<FileLink[]>
  /**
   * Creates a link with which anybody can read a file for some seconds. Returns its address, which is not shown again.
   */
  createLink (id: string, link: { seconds: number, name?: string }): Promise<string>
  revokeLink (id: string, linkId: string): Promise<void>
  /** Loads older files, and shows them after the others. */
  loadMore (): Promise<void>
}

interface Files { readonly files: FileRecord[], readonly next: string | undefined }

const PAGE = 20
const MAX_PAGE = 1000

async function readFiles (
  client: UsherClient, query: { limit: number, after?: string }, signal?: AbortSignal
): Promise<Files> {
  const result = await client.get('/api/uploads', { params: { query }, ...signal && { signal } })
  const link = result.response.headers.get('Link') ?? ''
  return { files: await unwrap(result), next: /[?&]after=([\w-]+)[^>]*>; rel="next"/.exec(link)?.[1] }
}

const files = define<Files, FileActions>({
  load: (client, signal, former) => {
    const limit = Math.min(MAX_PAGE, Math.max(PAGE, former?.files.length ?? 0))
    return readFiles(client, { limit }, signal)
  },
  actions: (client, resource) => ({
    async upload (file, options) {
      const uploaded = await uploadFile(client, file, options)
      await resource.refresh()
      return uploaded
    },
    async update (id, body) {
      const changed = await unwrap(client.patch('/api/uploads/{id}', { params: { path: { id } }, body }))
      await resource.refresh()
      return changed
    },
    async remove (id) {
      await ignoreMissing(client.delete('/api/uploads/{id}', { params: { path: { id } } }))
      await resource.refresh()
    },
    links: (id) => unwrap(client.get('/api/uploads/{id}/links', { params: { path: { id } } })),
    async createLink (id, body) {
      const { url } = await unwrap(client.post('/api/uploads/{id}/links', { params: { path: { id } }, body }))
      return new URL(url, new URL(client.baseUrl, pageUrl)).href
    },
    async revokeLink (id, linkId) {
      const params = { path: { id, linkId } }
      await ignoreMissing(client.delete('/api/uploads/{id}/links/{linkId}', { params }))
    },
    async loadMore () {
      const { data } = resource.current()
      if (data?.next === undefined) return
      const { files, next } = await readFiles(client, { limit: PAGE, after: data.next })
      // It may have been loaded again meanwhile.
      if (resource.current().data === data) resource.update({ files: [...data.files, ...files], next })
    },
  }),
})

/** Returns the files of the user, newest first, and whether there are older ones. */
export function useFiles (client?: UsherClient): Used<FileRecord[], FileActions> & { hasMore: boolean } {
  const { data, ...rest } = useResource(files, client)
  return { ...rest, data: data?.files, hasMore: data?.next !== undefined }
}

export interface ProfileActions {
  /**
   * Changes what the user has changed. A new address counts when the link that is mailed to it is used, if the service
   * sends mails: then `isPending` is true. Needs step-up for the address.
   */
  update (changes: Schemas['PatchUser']): Promise<{ user: Profile, isPending: boolean }>
  /** Has a link mailed with which the user confirms the address. */
  requestVerification (): Promise<void>
}

const idOf = ({ session }: UsherClient): { path: { id: string } } => {
  const id = session.current.user?.id
  if (id === undefined) throw new UsherError(401, ['Nobody has logged in'], 'UNAUTHENTICATED')
  return { path: { id } }
}

const profile = define<Profile, { profile: ProfileActions, account: AccountActions }>({
  load: (client, signal) => unwrap(client.get('/api/users/{id}', { params: idOf(client), signal })),
  actions: (client, resource) => ({
    profile: {
      async update (body) {
        const params = idOf(client)
        const patch = (headers: { Prefer?: string }) => unwrap(client.patch('/api/users/{id}', { params, headers, body }))
        const user = await patch(body.email === undefined ? {} : { Prefer: 'respond-async' }).catch((error) => {
          // Nobody could ever confirm it.
          if (!(error instanceof UsherError) || error.code !== 'NO_MAILER') throw error
          return patch({})
        })
        resource.update(user)
        const isPending = body.email !== undefined && user.email?.toLowerCase() !== body.email.toLowerCase()
        return { user, isPending }
      },
      async requestVerification () {
        await unwrap(client.post('/api/users/{id}/email-verification', { params: idOf(client) }))
      },
    },
    account: {
      exportData: () => unwrap(client.get('/api/users/{id}/export', { params: idOf(client) })),
      async remove () {
        await ignoreMissing(client.delete('/api/users/{id}', { params: idOf(client) }))
        // The session has ended with the account. This tells the other tabs.
        await client.logout()
      },
      logOut: () => client.logout(),
      async logOutEverywhere () {
        await unwrap(client.delete('/api/auth/sessions'))
        await client.logout()
      },
    },
  }),
})

/** Returns the record of the user, with the fields of the host. */
export function useProfile (client?: UsherClient): Used<Profile, ProfileActions> {
  const { profile: actions, account, ...rest } = useResource(profile, client)
  return { ...rest, ...actions }
}

export interface AccountActions {
  /** Returns everything that is stored about the user. Needs step-up. */
  exportData (): Promise<Schemas['UserExport']>
  /** Deletes the account for good. Needs step-up. */
  remove (): Promise<void>
  logOut (): Promise<void>
  /** Ends all sessions of the user. */
  logOutEverywhere (): Promise<void>
}

/** Returns the record of the user, and what concerns the account as a whole. */
export function useAccount (client?: UsherClient): Used<Profile, AccountActions> {
  const { profile: actions, account, ...rest } = useResource(profile, client)
  return { ...rest, ...account }
}

export interface IdentityActions {
  /**
   * Begins to link an account at a provider. Returns the address to which the browser goes (`location.assign`), and
   * from which it comes back to `returnTo`. Needs step-up.
   */
  link (provider: string, returnTo?: string): Promise<string>
  /** Needs step-up. */
  unlink (id: string): Promise<void>
}

const identities = define<Identity[], IdentityActions>({
  load: (client, signal) => unwrap(client.get('/api/auth/identities', { signal })),
  actions: (client, resource) => ({
    async link (id, returnTo) {
      const body = returnTo === undefined ? {} : { returnTo }
      const params = { path: { id } }
      // The cookie that is set belongs to the browser, also if the page is of another origin.
      const init = { params, body, credentials: 'include' } as const
      return (await unwrap(client.post('/api/auth/providers/{id}/link', init))).url
    },
    async unlink (id) {
      await ignoreMissing(client.delete('/api/auth/identities/{id}', { params: { path: { id } } }))
      await resource.refresh()
    },
  }),
})

/** Returns the accounts at providers that are linked, newest first. */
export const useIdentities = (client?: UsherClient): Used<Identity[], IdentityActions> =>
  useResource(identities, client)

const providers = define<Provider[], object>({
  isPublic: true,
  load: (client, signal) => unwrap(client.get('/api/auth/providers', { signal })),
  actions: () => ({}),
})

const settings = define<SignInSettings, object>({
  isPublic: true,
  load: (client, signal) => unwrap(client.get('/api/auth/settings', { signal })),
  actions: () => ({}),
})

/** Returns what a login and a sign-up consist of: providers, mails, sign-up, and the fields of the host. */
export const useSignInSettings = (client?: UsherClient): Used<SignInSettings> => useResource(settings, client)

const NO_FIELDS: FieldsSchema = { properties: {} }

/** Returns the fields of the provider above, or those that the service says once it has answered. */
export function useFields (): FieldsSchema {
  const { client, fields } = useProvided()
  const { data } = useSignInSettings(client)
  return fields ?? data?.fields ?? NO_FIELDS
}

/** Returns the providers with which users sign in. */
export const useProviders = (client?: UsherClient): Used<Provider[]> => useResource(providers, client)
