import type { Texts } from '../../../../schema/translations/en.ts'
import type { Html } from '../../html.ts'
import type { PageValues } from '../page-values.ts'

/** What a template gets. */
export interface View {
  /** The texts of the reader's language. */
  readonly t: Texts
  readonly v: PageView
}

/** What the page shows besides its texts. */
export interface PageView extends PageValues {
  readonly title: string
  /** The path to the prefix, relative to the page. */
  readonly root: string
  /** The links to the providers with which users log in; undefined if there are none. */
  readonly providers: Html | undefined
}

export type Template = (view: View) => Html
