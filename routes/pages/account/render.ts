import type { Options } from '../../../schema/options/options.ts'
import type { UserFields } from '../../../schema/users/user-fields.ts'
import type { Provider } from '../../../schema/sign-in/providers.ts'
import { TooManyRequests } from '../../../schema/http/errors.ts'
import { failureTexts, REJECTED } from '../../../schema/options/page-texts.ts'
import type { Texts } from '../../../schema/translations/en.ts'
import { inputText } from '../../../schema/translations/describe-input.ts'
import { formatText, toSentence } from '../../../schema/translations/format.ts'
import { directionOf } from '../../../schema/translations/languages.ts'
import { page as showPage } from '../components.ts'
import { attributes, html, type Html } from '../html.ts'
import type { Page } from './page-list.ts'
import { accountFields, showHostFacts, showHostFields, showOrganizationFields, signUpFields } from './host-fields.ts'
import { markTemplates } from './provider-marks.ts'
import { fieldErrors, type PageValues } from './page-values.ts'
import { aroundMailLink } from './templates/mail-link.ts'

/**
 * Returns a function that renders pages from their templates.
 *
 * @param assets the folder of scripts and styles by language, relative to the prefix
 * @param texts the texts by language
 * @param providers those with which users log in
 */
export function createRenderer (
  { pages: { productName, logo, appUrl, termsUrl, privacyUrl }, userFields, organizations }:
  Pick<Options, 'pages' | 'userFields' | 'organizations'>,
  { assets, texts, providers }: {
    assets: (language: string) => string
    texts: ReadonlyMap<string, Texts>
    providers: readonly (Provider & { mark: Html })[]
  }
) {
  // What depends on nothing but the language.
  const ofLanguages = new Map([...texts].map(([language, t]) => [language, {
    t,
    direction: directionOf(language),
    files: assets(language),
    header: appUrl && html`<a class="end" href="${appUrl}">${formatText(t.backToApp, { product: productName }, language)}</a>`,
    footer: (termsUrl ?? privacyUrl) && html`${termsUrl && html`<a href="${termsUrl}">${t.terms}</a>`}${
      privacyUrl && html`<a href="${privacyUrl}">${t.privacy}</a>`}`,
    choices: providers.map(({ id, name, mark }) => ({
      id, name, mark, text: formatText(t.continueWith, { provider: name }, language),
    })),
  }]))
  const onSignUp = signUpFields(userFields)
  const { written, shown } = accountFields(userFields)
  const profileFields = showHostFields(written, {}, { 'data-kept': true, 'data-member': true })
  const shownFields = showHostFacts(shown)
  const ofOrganizations = showOrganizationFields(organizations?.fields ?? [])
  const providerMarks = markTemplates(providers)

  // They are folded, because none of them is needed, unless one is wrong.
  function showSignUpFields (t: Texts, { typed, hostErrors }: PageValues): Html | undefined {
    if (onSignUp.length === 0) return undefined
    const fields = showHostFields(onSignUp, { values: typed ?? {}, errors: hostErrors ?? {} })
    return html`<details class="fold"${attributes({ open: hostErrors !== undefined })}><summary>${t.optionalMore}</summary>${fields}</details>`
  }

  return {
    render (page: Page, language: string, values: PageValues): string {
      const { t, direction, files, header, footer, choices } = ofLanguages.get(language)!
      const { path, template, script, mailLink, isWide = false } = page
      // URLs are relative to the page, so that it works below a prefix and behind a proxy that changes the path.
      const root = '../'.repeat(path.split('/').length - 2) || './'
      const [title, folder] = [t[values.challenge ? 'secondFactorTitle' : page.title], `${root}${files}`]
      const heading = page.heading && !values.challenge
        ? formatText(t[page.heading], { product: productName }, language)
        : title
      const links = choices.length > 0 ? showProviders(choices, root, values.returnQuery) : undefined
      const mailSentText = values.typedEmail
        ? formatText(t.loginMailSentTo, { email: values.typedEmail }, language)
        : t.loginMailSent
      const view = {
        t,
        f: (text: string, given: Readonly<Record<string, string>>) => formatText(text, given, language),
        v: {
          mailSentText,
          ...values,
          root,
          title,
          productName,
          providers: links,
          providerMarks,
          profileFields,
          shownFields,
          ...ofOrganizations,
          signUpFields: showSignUpFields(t, values),
        },
      }
      const content = mailLink ? aroundMailLink(view, mailLink, template(view)) : template(view)
      return `${showPage({
        language,
        direction,
        title,
        productName,
        icon: `${folder}icon.svg`,
        stylesheets: [`${folder}design.css`, `${folder}pages.css`],
        scripts: [`${folder}${script}`],
        skip: t.skipToContent,
        ...logo !== undefined && { logo },
        ...isWide ? { header, footer } : { footer: (header || footer) && html`${header}${footer}` },
        width: isWide ? 'wide' : 'narrow',
        content: isWide ? content : html`<div class="card">\n<h1 data-title="${title}">${heading}</h1>\n${content}\n</div>`,
      })}`
    },
  }
}

interface Choice { id: string, name: string, mark: Html, text: string }

// The line above says what all of them do, so that two stand beside each other.
function showProviders (choices: readonly Choice[], root: string, query = ''): Html {
  return html`${choices.map(({ id, name, mark, text }) => html`<a${attributes({
    class: 'button plain', href: `${root}api/auth/providers/${id}/start${query}`, 'aria-label': text,
  })}>${mark}${name}</a>\n`)}`
}

type Failure = Error & { code?: string, errors?: readonly string[] }

/** Returns the texts of a page for a failure. */
export const explain = (error: Failure, texts: Texts, language: string): string =>
  explainEach(error, texts, language).map(({ text }) => text).join(' ')

/** Returns what a form shows of a failure: the texts of its fields at these, and the others at its top. */
export function explainAtFields (
  error: Failure, texts: Texts, language: string, userFields: UserFields
): PageValues {
  const values: PageValues = {}
  const hostErrors: Record<string, string> = {}
  const ofHost = userFields.map(({ name }) => name)
  for (const { field, text, about, rule } of explainEach(error, texts, language)) {
    if (about !== undefined && ofHost.includes(about)) {
      hostErrors[about] = toSentence(rule)
      values.hostErrors = hostErrors
      values.hasFieldError = true
      continue
    }
    const name = field === undefined ? 'alert' : fieldErrors[field]
    values[name] = [values[name] ?? [], text].flat().join(' ')
    if (field !== undefined) values.hasFieldError = true
  }
  return values
}

function relativeTime (seconds: number, language: string): string {
  const format = new Intl.RelativeTimeFormat(language)
  return seconds < 60 ? format.format(seconds, 'second') : format.format(Math.ceil(seconds / 60), 'minute')
}

// Each sentence, with the field that it is about.
function explainEach (
  error: Failure, texts: Texts, language: string
): { text: string, field: keyof typeof fieldErrors | undefined, about?: string | undefined, rule: string }[] {
  const textOf = (name: string | undefined) =>
    name !== undefined && Object.hasOwn(failureTexts, name) ? texts[failureTexts[name]!] : undefined
  if (error instanceof TooManyRequests) {
    const text = formatText(texts.tooManyWait, { when: relativeTime(error.retryAfter, language) }, language)
    return [{ text, field: undefined, rule: '' }]
  }
  // A hook of the host may throw something that has no message.
  const sentences = error.errors ?? [error.message ?? texts.failed]
  return sentences.map((sentence) => {
    const [, first = '', rule = ''] = /^(\w+) (.*)/.exec(sentence) ?? []
    const isField = Object.hasOwn(fieldErrors, first) && error.code === 'INVALID_INPUT'
    return {
      // What a hook of the host says is a better reason than that one has rejected something.
      text: (error.code === REJECTED ? undefined : textOf(error.code)) ?? textOf(sentence) ??
        inputText(sentence, texts, language) ?? toSentence(sentence),
      field: isField ? first as keyof typeof fieldErrors : undefined,
      about: error.code === 'INVALID_INPUT' ? first : undefined,
      rule,
    }
  })
}
