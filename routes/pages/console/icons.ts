import { trusted, type Html } from '../html.ts'
import type { Section } from './context.ts'

// Drawn on a grid of 24, in lines of the color of the text.
const paths: Readonly<Record<Section | 'menu' | 'file' | 'lock' | 'more', string>> = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z',
  users: 'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20a6.5 6.5 0 0 1 13 0M16 4.3a3.5 3.5 0 0 1 0 6.4M18 14.2a6.5 6.5 0 0 1 3.5 5.8',
  organizations: 'M4 20V4h10v16M14 9h6v11M2.5 20h19M7.5 8h3M7.5 12h3M7.5 16h3M16.5 13h1M16.5 16.5h1',
  posts: 'M5 4h14v16H5zM9 9h6M9 13h6M9 17h3',
  uploads: 'M13 3H6v18h12V8zM13 3v5h5',
  log: 'M4 6h16M4 12h16M4 18h10',
  deliveries: 'M12 4 2.5 20h19zM12 10v4M12 17v.5',
  keys: 'M15.5 4a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM12.3 11.7 4 20M7 17l2.5 2.5',
  providers: 'M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.7 5.7l1-1',
  settings: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5',
  menu: 'M4 7h16M4 12h16M4 17h16',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  file: 'M13 3H6v18h12V8zM13 3v5h5',
  lock: 'M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3',
}

/** Returns a small picture beside a text, which screen readers leave out. */
export const icon = (name: keyof typeof paths): Html =>
  trusted(`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d="${paths[name]}"/></svg>`)
