import type { Texts } from '../../../../schema/translations/en.ts'
import type { Html } from '../../html.ts'
import type { PageValues } from '../page-values.ts'

/** What a template gets. */
export interface View {
  /** The texts of the reader's language. */
  readonly t: Texts
  readonly v: PageView
  /** Returns a text with its placeholders replaced by values. */
  readonly f: (text: string, values: Readonly<Record<string, string>>) => string
}

/** What the page shows besides its texts. */
export interface PageView extends PageValues {
  readonly title: string
  /** The path to the prefix, relative to the page. */
  readonly root: string
  readonly productName: string
  /** The fields of the host on the page for sign-ups, and in the profile; what the profile shows besides. */
  readonly signUpFields: Html | undefined
  readonly profileFields: Html | undefined
  readonly shownFields: Html | undefined
  /** Those of organisations in the forms that found and change one, and what the page of one shows. */
  readonly newOrganizationFields: Html | undefined
  readonly organizationFields: Html | undefined
  readonly organizationFacts: Html | undefined
  /** The marks of the providers, for scripts. */
  readonly providerMarks: Html
  /** The links to the providers with which users log in; undefined if there are none. */
  readonly providers: Html | undefined
}

export type Template = (view: View) => Html
