import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { escapeHtml, parseTemplate, type Template } from '../../../plugins/support/template.ts'
import type { Options } from '../../../schema/options/options.ts'
import type { Provider } from '../../../schema/sign-in/providers.ts'
import { TooManyRequests } from '../../../schema/http/errors.ts'
import { failureTexts, pageTexts, REJECTED } from '../../../schema/options/page-texts.ts'
import { formMembers, hasLines, members, type Member } from '../../../schema/users/members.ts'
import type { Texts } from '../../../schema/translations/en.ts'
import { inputText } from '../../../schema/translations/describe-input.ts'
import { formatText, toSentence } from '../../../schema/translations/format.ts'
import { directionOf } from '../../../schema/translations/languages.ts'
import type { MailLink, Page } from './page-list.ts'
import { fieldErrors, valueNames, type PageValues } from './page-values.ts'

const FOLDER = join(import.meta.dirname, 'templates')

const ofLinks = ['linkCheck', 'linkAction', 'helpPath', 'helpText', 'linkDone']
const ofPages = [
  'title', 'productName', 'language', 'direction', 'width', 'root', 'assets', 'script', 'logo', 'appUrl', 'termsUrl',
  'privacyUrl', 'hasFooter', 'backToAppText', ...ofLinks,
]
const names = [...Object.keys(pageTexts), ...valueNames, ...ofPages]

/**
 * Returns a function that renders pages from their templates.
 *
 * @param assets the folder of scripts and styles by language, relative to the prefix
 * @param texts the texts by language
 * @param providers those with which users log in
 */
export function createRenderer (
  { pages: { productName, logo, appUrl, termsUrl, privacyUrl } }: Pick<Options, 'pages'>,
  { assets, texts, providers }: {
    assets: (language: string) => string
    texts: ReadonlyMap<string, Texts>
    providers: readonly Provider[]
  }
) {
  const [layout, card, mailLink] = [readFrame('layout'), readFrame('card'), readFrame('mail-link')]
  const templates = new Map<string, Template>()
  const shared = {
    productName, logo, appUrl, termsUrl, privacyUrl, hasFooter: termsUrl ?? privacyUrl,
  }

  function templateOf (name: string, isMailLink: boolean, language: string): Template {
    const key = `${name} ${language}`
    const known = templates.get(key)
    if (known) return known
    const content = readTemplate(name).replace('{{providers}}', () => choiceIn(language))
      .replace('{{profileFields}}', () => profileFields)
    const inner = isMailLink ? mailLink.join(content) : content
    const source = layout.join(name === 'account' ? inner : card.join(inner))
    const template = parseTemplate(source, { names, escape: escapeHtml })
    templates.set(key, template)
    return template
  }

  function choiceIn (language: string): string {
    if (providers.length === 0) return ''
    const { continueWith, providersTitle, or } = texts.get(language)!
    const links = providers.map(({ id, name }) => linkTo(id, formatText(continueWith, { provider: name }, language)))
    return `<p class="divider">${escapeTemplate(or)}</p>
<nav class="providers" aria-label="${escapeTemplate(providersTitle)}">\n${links.join('\n')}\n</nav>`
  }

  function describeLink ({ check, action, help: [helpPath, helpText], done }: MailLink, known: Texts) {
    return {
      linkCheck: check, linkAction: action, helpPath, helpText: known[helpText], linkDone: known[done],
    }
  }

  return {
    render ({ path, template, title, script, mailLink }: Page, language: string, values: PageValues): string {
      const known = texts.get(language)!
      // URLs are relative to the page, so that it works below a prefix and behind a proxy that changes the path.
      const root = '../'.repeat(path.split('/').length - 2) || './'
      const page = {
        title: known[title],
        language,
        direction: directionOf(language),
        width: template === 'account' ? 'wide' : 'narrow',
        root,
        assets: `${root}${assets(language)}`,
        script,
        backToAppText: formatText(known.backToApp, { product: productName }, language),
        mailSentText: values.typedEmail === undefined || values.typedEmail === ''
          ? known.loginMailSent
          : formatText(known.loginMailSentTo, { email: values.typedEmail }, language),
      }
      const link = mailLink && describeLink(mailLink, known)
      return templateOf(template, mailLink !== undefined, language)(
        { ...known, ...shared, ...page, ...link, ...values }
      )
    },
  }
}

// Their labels are texts of the page.
const profileFields = formMembers.flatMap((name) => {
  const { form, input }: Member = members[name]
  if (!form?.page) return []
  const { required, page: { label, autocomplete } } = form
  const shared = `id="${name}" name="${name}" autocomplete="${autocomplete}"${required ? ' required' : ''} aria-describedby="${name}-error" data-kept data-member`
  return `<div class="field"><label for="${name}">{{${label}}}</label>
${hasLines(input) ? `<textarea ${shared}></textarea>` : `<input ${shared}>`}
<p class="field-error" role="alert" id="${name}-error"></p></div>`
}).join('\n')

// The options have the names of providers, and templates have braces that stand for something.
const escapeTemplate = (text: string): string =>
  escapeHtml(text).replace(/[{}]/g, (brace) => `&#${brace.codePointAt(0)};`)

const linkTo = (id: string, text: string): string =>
  `<a class="button plain wide" href="{{root}}api/auth/providers/${id}/start{{returnQuery}}">${escapeTemplate(text)}</a>`

const readTemplate = (name: string): string => readFileSync(join(FOLDER, `${name}.html`), 'utf8')

// Returns what precedes and follows the content that a template is put around.
const readFrame = (name: string): string[] => readTemplate(name).split('{{content}}')

type Failure = Error & { code?: string, errors?: readonly string[] }

/** Returns the texts of a page for a failure. */
export const explain = (error: Failure, texts: Texts, language: string): string =>
  explainEach(error, texts, language).map(({ text }) => text).join(' ')

/** Returns what a form shows of a failure: the texts of its fields at these, and the others at its top. */
export function explainAtFields (error: Failure, texts: Texts, language: string): PageValues {
  const values: PageValues = {}
  for (const { field, text } of explainEach(error, texts, language)) {
    const name = field === undefined ? 'alert' : fieldErrors[field]
    values[name] = [values[name] ?? [], text].flat().join(' ')
    if (field !== undefined) values.hasFieldError = 'yes'
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
): { text: string, field: keyof typeof fieldErrors | undefined }[] {
  const textOf = (name: string | undefined) =>
    name !== undefined && Object.hasOwn(failureTexts, name) ? texts[failureTexts[name]!] : undefined
  if (error instanceof TooManyRequests) {
    const text = formatText(texts.tooManyWait, { when: relativeTime(error.retryAfter, language) }, language)
    return [{ text, field: undefined }]
  }
  // A hook of the host may throw something that has no message.
  const sentences = error.errors ?? [error.message ?? texts.failed]
  return sentences.map((sentence) => {
    const [, first = ''] = /^(\w+) /.exec(sentence) ?? []
    const isField = Object.hasOwn(fieldErrors, first) && error.code === 'INVALID_INPUT'
    return {
      // What a hook of the host says is a better reason than that one has rejected something.
      text: (error.code === REJECTED ? undefined : textOf(error.code)) ?? textOf(sentence) ??
        inputText(sentence, texts, language) ?? toSentence(sentence),
      field: isField ? first as keyof typeof fieldErrors : undefined,
    }
  })
}
