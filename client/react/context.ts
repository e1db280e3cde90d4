import { createContext, createElement, useContext, useMemo, useState, type ReactElement, type ReactNode } from 'react'
import { createUsherClient, type UsherClient } from '../index.ts'
import { pageUrl } from '../tabs.ts'
import type { FieldsSchema } from './fields.ts'
import { english, type Texts } from './texts.ts'

interface Provided {
  readonly client: UsherClient
  readonly texts: Texts
  readonly fields: FieldsSchema | undefined
}

export interface UsherProviderProps {
  /** Default: a client for `baseUrl`, one for each address and page. */
  client?: UsherClient
  /** Where Usher is mounted, such as `/accounts`. Default: the origin of the page. */
  baseUrl?: string
  /** Texts in place of the English ones, all or some. */
  texts?: Partial<Texts>
  /**
   * The fields of the host, in place of those that the service says: a JSON schema, or the object of TypeBox that the
   * host passes as `userFields`.
   */
  fields?: FieldsSchema
  children?: ReactNode
}

const Context = createContext<Provided | undefined>(undefined)

// A page has one client for each address, because each of them asks other tabs for the session.
const clients = new Map<string, UsherClient>()

function clientOf (baseUrl: string): UsherClient {
  const client = clients.get(baseUrl) ?? createUsherClient({ baseUrl })
  // What a server renders for different users shares nothing.
  if (pageUrl !== undefined) clients.set(baseUrl, client)
  return client
}

/** Gives the hooks and components below it a client, texts, and the fields of the host. */
export function UsherProvider (
  { client: given, baseUrl = '', texts, fields, children }: UsherProviderProps
): ReactElement {
  const [own] = useState(() => given ? undefined : clientOf(baseUrl))
  const client = given ?? own ?? clientOf(baseUrl)
  const value = useMemo(() => ({ client, texts: { ...english, ...texts }, fields }), [client, texts, fields])
  return createElement(Context.Provider, { value }, children)
}

/** Returns the client of the provider above. Throws without one. */
export const useUsherClient = (): UsherClient => useProvided().client

/** Returns a client that was given, or that of the provider above. */
export function useClient<Client> (given: Client | undefined): Client | UsherClient {
  const provided = useContext(Context)
  return given ?? requireProvided(provided).client
}

/** Returns what the provider above has got. Throws without one. */
export const useProvided = (): Provided => requireProvided(useContext(Context))

function requireProvided (provided: Provided | undefined): Provided {
  if (!provided) throw new Error('There is no client: render <UsherProvider> above, or pass a client to the hook')
  return provided
}
