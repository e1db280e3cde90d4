import { trusted, type Html } from '../html.ts'

// Drawn on a grid of 24, in lines of the color of the text.
const paths = {
  eye: 'M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z',
  passkey: 'M15.5 4a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM12.3 11.7 4 20M7 17l2.5 2.5',
  mail: 'M3 5.5h18v13H3zM3.5 6l8.5 7 8.5-7',
  password: 'M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3',
  app: 'M7.5 2.5h9v19h-9zM11 18.5h2',
  linked: 'M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.7 5.7l1-1',
  sessions: 'M3 4.5h18v11.5H3zM8 20h8M12 16v4',
  key: 'M4 8.5 8.5 12 4 15.5M11 16.5h9',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
} as const

export type Icon = keyof typeof paths

/** Returns a small picture beside a text, which screen readers leave out. */
export const icon = (name: Icon): Html =>
  trusted(`<svg class="icon ${name}" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d="${paths[name]}"/></svg>`)
