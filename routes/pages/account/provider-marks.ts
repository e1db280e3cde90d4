import type { ProviderOption } from '../../../schema/options/providers.ts'
import { html, trusted, type Html } from '../html.ts'

const mark = (content: string): Html => trusted(
  `<svg class="mark" viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" focusable="false">${content}</svg>`
)

// What people know the providers by. They are drawn here, because the pages use no file of another site.
const marks: Readonly<Record<string, Html>> = {
  google: mark(
    '<path fill="#4285f4" d="M22.5 12.3c0-.8-.1-1.6-.2-2.3H12v4.3h5.9a5 5 0 0 1-2.2 3.3v2.8h3.6c2.1-2 3.2-4.8 3.2-8.1z"/>' +
    '<path fill="#34a853" d="M12 23c3 0 5.5-1 7.3-2.7l-3.6-2.7a6.6 6.6 0 0 1-9.9-3.5H2.2v2.8A11 11 0 0 0 12 23z"/>' +
    '<path fill="#fbbc05" d="M5.8 14.1a6.6 6.6 0 0 1 0-4.2V7.1H2.2a11 11 0 0 0 0 9.8z"/>' +
    '<path fill="#ea4335" d="M12 5.4c1.6 0 3.1.6 4.2 1.6l3.2-3.1A11 11 0 0 0 2.2 7.1l3.6 2.8A6.5 6.5 0 0 1 12 5.4z"/>'
  ),
  microsoft: mark(
    '<path fill="#f25022" d="M2 2h9.5v9.5H2z"/><path fill="#7fba00" d="M12.5 2H22v9.5h-9.5z"/>' +
    '<path fill="#00a4ef" d="M2 12.5h9.5V22H2z"/><path fill="#ffb900" d="M12.5 12.5H22V22h-9.5z"/>'
  ),
  github: mark(
    '<path fill="currentColor" d="M12 1a11 11 0 0 0-3.5 21.4c.6.1.8-.2.8-.5v-2c-3.1.6-3.8-1.4-3.8-1.4-.5-1.3-1.2-1.6-1.2-1.6' +
    '-1-.7.1-.7.1-.7 1.1.1 1.7 1.1 1.7 1.1 1 1.7 2.6 1.2 3.2.9.1-.7.4-1.2.7-1.4-2.4-.3-5-1.2-5-5.5 0-1.2.4-2.2 1.1-3' +
    '-.1-.2-.5-1.4.1-2.9 0 0 1-.3 3.1 1.1a10.5 10.5 0 0 1 5.5 0c2.1-1.4 3-1.1 3-1.1.6 1.5.2 2.7.1 2.9.7.8 1.1 1.8 1.1 3' +
    ' 0 4.3-2.6 5.2-5 5.5.4.3.8 1 .8 2v3c0 .3.2.6.8.5A11 11 0 0 0 12 1z"/>'
  ),
  apple: mark(
    '<path fill="currentColor" d="M17.1 12.8c0-2.5 2-3.7 2.1-3.8a4.6 4.6 0 0 0-3.6-2c-1.5-.2-3 .9-3.8.9-.8 0-2-.9-3.2-.9' +
    'a4.8 4.8 0 0 0-4 2.5c-1.7 3-.4 7.4 1.3 9.9.8 1.2 1.8 2.5 3.1 2.5 1.2-.1 1.7-.8 3.2-.8s1.9.8 3.2.8c1.4 0 2.2-1.2 3-2.4' +
    '.9-1.4 1.3-2.7 1.4-2.8-.1 0-2.7-1-2.7-3.9zM14.7 5.5c.7-.8 1.1-2 1-3.1-1 0-2.2.6-2.9 1.5-.6.7-1.2 1.9-1 3 1.1.1 2.2-.6 2.9-1.4z"/>'
  ),
  gitlab: mark(
    '<path fill="#e24329" d="M12 22 8 9.5h8zM2.6 9.5H8L5.7 2.3c-.1-.4-.7-.4-.8 0zM21.4 9.5H16l2.3-7.2c.1-.4.7-.4.8 0z"/>' +
    '<path fill="#fc6d26" d="M12 22 8 9.5H2.6zM12 22l4-12.5h5.4z"/>' +
    '<path fill="#fca326" d="m2.6 9.5-1.2 3.7c-.1.3 0 .7.3.9L12 22zM21.4 9.5l1.2 3.7c.1.3 0 .7-.3.9L12 22z"/>'
  ),
  discord: mark(
    '<path fill="#5865f2" d="M20 4.9A18 18 0 0 0 15.4 3.5l-.6 1.2a17 17 0 0 0-5.6 0l-.6-1.2A18 18 0 0 0 4 4.9C1.1 9.2.3 13.4.7 17.6' +
    'a18 18 0 0 0 5.5 2.8l1.2-1.9-1.9-.9.5-.4a13 13 0 0 0 12 0l.5.4-1.9.9 1.2 1.9a18 18 0 0 0 5.5-2.8C23.8 12.7 22.5 8.6 20 4.9z' +
    'M8.3 15.1c-1.1 0-2-1-2-2.2s.9-2.2 2-2.2 2 1 2 2.2-.9 2.2-2 2.2zm7.4 0c-1.1 0-2-1-2-2.2s.9-2.2 2-2.2 2 1 2 2.2-.9 2.2-2 2.2z"/>'
  ),
  // LinkedIn, Facebook, Slack and others change their marks, or forbid to draw them: they have this one.
  generic: mark(
    '<path fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" ' +
    'd="M14 3h5a2 2 0 0 1 2 2v14a2 2 0 0 1-2 2h-5M10 17l5-5-5-5M15 12H3"/>'
  ),
}

/** Returns the mark of a provider: of its preset, or of its id. */
export function markOf (id: string, preset?: ProviderOption['preset']): Html {
  const known = [preset, id, id.split('-')[0]].find((name) => name !== undefined && Object.hasOwn(marks, name))
  return marks[known ?? 'generic']!
}

/** Returns the marks of providers for a script, each in a template. */
export const markTemplates = (providers: readonly { id: string, mark: Html }[]): Html =>
  html`${providers.map(({ id, mark }) => html`<template data-mark="${id}">${mark}</template>`)}`
