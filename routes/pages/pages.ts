import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { FastifyRequest } from 'fastify'
import { preferredType } from '../../schema/http/media-type.ts'

/** Returns whether a request prefers a page to JSON, as those of browsers do. */
export function wantsPage (request: FastifyRequest): boolean {
  return preferredType(request.headers.accept, ['application/json', 'text/html']) === 'text/html'
}

/** Returns a file of this folder. */
export const readFileOfPage = (name: string): Promise<string> => readFile(new URL(name, import.meta.url), 'utf8')

/**
 * Returns a template with each `{{name}}` replaced by the value of that name. Values are inserted as they are, so they
 * must be HTML.
 */
export function fillTemplate (template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = values[name]
    if (value === undefined) throw new Error(`the template has no value for ${name}`)
    return value
  })
}

/** Returns the form with which a user signs in on a page. `api` is the address of the API, relative to the page. */
export async function readSignIn (api: string): Promise<string> {
  return fillTemplate(await readFileOfPage('sign-in.html'), { api })
}

/** Returns the source of an inline script or style for a content security policy. */
export const sourceOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
