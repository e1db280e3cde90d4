import type { InjectOptions } from 'fastify'
import type { LoggedIn, TestUsher } from './app.ts'

export const FORM = 'application/x-www-form-urlencoded'

/** Where the form that opens the console is sent on to. */
export const OPENING = '/api/auth/pages/console'

/** Returns functions that use the console as a browser of the same origin does. */
export function withConsole ({ inject, login, prefix }: TestUsher) {
  /** Sends a form. */
  const send = (path: string, fields: object, headers: InjectOptions['headers'] = {}) =>
    inject('POST', path, {
      headers: { 'content-type': FORM, 'sec-fetch-site': 'same-origin', ...headers },
      payload: `${new URLSearchParams(Object.entries(fields).filter(([, value]) => typeof value === 'string'))}`,
    })

  /** Sends the form that opens the console with the cookie of a session, as it arrives. */
  const exchange = (cookie: string, { next = '', headers = {} }: { next?: string, headers?: object } = {}) =>
    send(`${OPENING}?${new URLSearchParams({ next })}`, {}, { cookie, ...headers })

  /** Logs in, and opens the console. Returns its cookie, in the form of a header. */
  async function open (user: Pick<LoggedIn, 'email' | 'password'>): Promise<string> {
    const response = await exchange((await login(user)).cookie)
    if (!response.headers['set-cookie']) throw new Error(`console: ${response.statusCode} ${response.body}`)
    return cookieOf(response)
  }

  return {
    send,
    exchange,
    open,

    /** Reads a page with a cookie. */
    read: (path: string, cookie?: string) => inject('GET', path, { headers: { ...cookie !== undefined && { cookie } } }),

    /** Reads a page, changes some of the fields of one of its forms, and sends that. */
    async fill (path: string, action: string, changes: Record<string, string>, cookie: string) {
      const { body } = await inject('GET', path, { headers: { cookie } })
      return send(action.slice(prefix.length), { ...fieldsOf(body, action), ...changes }, { cookie })
    },
  }
}

export function cookieOf ({ headers }: { headers: Record<string, unknown> }): string {
  return `${headers['set-cookie']}`.split(';')[0]!
}

const unescape = (text: string): string => text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<')
  .replaceAll('&gt;', '>').replaceAll('&amp;', '&')

/** Returns the fields that a form has, with their values. */
export function fieldsOf (page: string, action: string): Record<string, string> {
  const [, form = ''] = new RegExp(`<form[^>]* action="${action}">(.*?)</form>`, 's').exec(page) ?? []
  const fields: Record<string, string> = {}
  for (const [, tag = ''] of form.matchAll(/<input([^>]*)>/g)) {
    const [name, value] = [/ name="([^"]*)"/.exec(` ${tag}`)?.[1], / value="([^"]*)"/.exec(` ${tag}`)?.[1] ?? '']
    const isChosen = !/type="radio"/.test(tag) || / checked/.test(tag)
    if (name !== undefined && isChosen && !/type="checkbox"/.test(tag)) fields[name] = unescape(value)
  }
  for (const [, name, options = ''] of form.matchAll(/<select[^>]* name="([^"]*)"[^>]*>(.*?)<\/select>/gs)) {
    fields[name!] = /<option value="([^"]*)" selected>/.exec(options)?.[1] ?? /<option value="([^"]*)"/.exec(options)?.[1] ?? ''
  }
  // HTML ignores a line break at the beginning of a text area.
  for (const [, name, text = ''] of form.matchAll(/<textarea[^>]* name="([^"]*)"[^>]*>\n?(.*?)<\/textarea>/gs)) {
    fields[name!] = unescape(text)
  }
  return fields
}
