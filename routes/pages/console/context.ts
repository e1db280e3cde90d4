import type { FastifyRequest } from 'fastify'
import type { Caller } from '../../../plugins/access/caller.ts'
import type { Actor } from '../../../schema/options/policy.ts'
import type { Html, HtmlValue } from '../html.ts'
import type { Words } from './words.ts'

export type Section =
  'overview' | 'users' | 'organizations' | 'posts' | 'uploads' | 'log' | 'deliveries' | 'keys' | 'providers' | 'settings'

/** What a page of the console is rendered for. */
export interface Context {
  request: FastifyRequest
  caller: Caller
  actor: Actor
  words: Words
  /** The path of the console, such as `/console`. */
  path: string
  /** The parameters of the address that are texts. */
  query: Readonly<Record<string, string | undefined>>
  /** The parameters of the path. */
  params: Readonly<Record<string, string>>
}

/** The fields of a form, by name. */
export type Form = Readonly<Record<string, string | undefined>>

/** What a page shows because a form was sent to it. */
export interface Outcome {
  /** What the form had. */
  typed?: Form
  /** What went wrong, and the sentences about the fields. */
  error?: Error & { errors?: readonly string[] }
  /** Which form it was. */
  form?: string
  /** What was made of the request, to be shown once. */
  result?: HtmlValue
}

/** A page. */
export interface View {
  section: Section
  title: string
  /** The pages above it. */
  crumbs?: readonly { href: string, text: string }[]
  /** What stands before its title, and below it. */
  image?: HtmlValue
  hint?: HtmlValue
  actions?: HtmlValue
  content: Html
}

export type Render = (context: Context, outcome?: Outcome) => Promise<View>

/** What a form has done: the address to go on at, what its page shows once, another page, or a file. */
export type Done = string | { result: Html } | { view: View } | { file: string, json: unknown }

export type Submit = (context: Context, typed: Form) => Promise<Done>

/** How many rows a list has. */
export const ROWS_PER_PAGE = 50

/** Returns an address with those parameters that have a value. */
export function addressOf (path: string, query: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]))
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}
