import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { readCatalogue } from '../../schema/translations/catalogues.ts'
import { en as consoleTexts } from '../../schema/translations/console/en.ts'
import { readConsoleTexts } from '../../schema/translations/console/index.ts'
import { en } from '../../schema/translations/en.ts'
import { formatText } from '../../schema/translations/format.ts'
import { mailTexts } from '../../schema/translations/mails/index.ts'
import { languageTags, type LanguageTag } from '../../schema/translations/languages.ts'
import { describeUserAgent } from '../../schema/strings/user-agent.ts'

const PLURAL = /\{(\w+), plural,((?:\s*\w+\s*\{[^{}]*\})+)\s*\}/g

const pluralsIn = (text: string) => [...text.matchAll(PLURAL)].map(([, name, cases = '']) =>
  [name, [...cases.matchAll(/(\w+)\s*\{/g)].map(([, category]) => category).sort()] as const)

const placeholdersIn = (text: string) =>
  [...text.replace(PLURAL, '{$1}').matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort()

interface Catalogue {
  rule: string
  name: string
  english: Readonly<Record<string, string>>
  read: (tag: LanguageTag) => Promise<Readonly<Record<string, string>>>
}

const catalogues: readonly Catalogue[] = [
  { rule: '15.2', name: 'the texts of pages', english: en, read: readCatalogue },
  { rule: '18.2', name: 'the texts of the console', english: consoleTexts, read: readConsoleTexts },
]

for (const { rule, name, english: all, read } of catalogues) {
  for (const tag of languageTags) {
    t.test(`${rule} ${name} in ${tag} are complete, with the placeholders of the English ones and all plurals`, async (t) => {
      const texts = await read(tag)
      t.strictSame(Object.keys(texts), Object.keys(all), 'the same texts in the same order')
      const pluralCategories = new Intl.PluralRules(tag).resolvedOptions().pluralCategories.toSorted()
      const wrong = Object.entries(texts).flatMap(([name, text]) => {
        const english = all[name]!
        const requirements = {
          'the placeholders of the English text': isDeepStrictEqual(placeholdersIn(text), placeholdersIn(english)),
          'as many plurals as the English text': pluralsIn(text).length === pluralsIn(english).length,
          'all plurals': pluralsIn(text).every(([, categories]) => isDeepStrictEqual(categories, pluralCategories)),
          'no white space around it': text === text.trim(),
          '1 to 500 characters': text.length > 0 && text.length <= 500,
          'no markup': !/[<>]|\{\{|\}\}\}/.test(text),
        }
        return Object.entries(requirements).filter(([, isMet]) => !isMet).map(([what]) => `${name} needs ${what}: ${text}`)
      })
      t.strictSame(wrong, [])
      if (tag !== 'en') {
        const same = Object.entries(texts).filter(([name, text]) => text === all[name])
        t.ok(same.length < 20, `${same.map(([name]) => name)} are not translated`)
      }
    })
  }
}

t.test('15.2 the name of a button for screen readers contains what the button shows, in every language', async (t) => {
  for (const tag of languageTags) {
    const texts = await readCatalogue(tag)
    const segmenter = new Intl.Segmenter(tag, { granularity: 'word' })
    const wordsOf = (text: string) =>
      [...segmenter.segment(text.toLowerCase())].filter(({ isWordLike }) => isWordLike).map(({ segment }) => segment)
    for (const [name, shown] of [['passkeyLogIn', 'passkeyWay'], ['loginMailLink', 'mailWay']] as const) {
      const missing = wordsOf(texts[shown]).filter((word) => !wordsOf(texts[name]).includes(word))
      t.same(missing, [], `${tag}: ${texts[name]}`)
    }
  }
})

t.test('18.2 a text of the console is not called like one of the pages, beside which it is', async (t) => {
  t.strictSame(Object.keys(consoleTexts).filter((name) => Object.hasOwn(en, name)), [])
})

t.test('15.2 placeholders and plurals follow the language', async (t) => {
  t.equal(formatText('Back to {product}, {other}', { product: '{other}$&' }, 'en'), 'Back to {other}$&, {other}')
  const format = async (tag: 'en' | 'ar' | 'ja', count: number) =>
    formatText((await readCatalogue(tag)).recoveryLeft, { count }, tag)
  t.equal(await format('en', 1), '1 recovery code left')
  t.equal(await format('en', 10), '10 recovery codes left')
  t.equal(await format('ar', 2), 'بقي رمزا استرداد')
  t.match(await format('ar', 5), /^بقيت \S+ رموز استرداد$/)
  t.equal(await format('ja', 3), '残りのリカバリーコード: 3個')
})

t.test('15.2 sessions are in words: browser and system, for what is known of any User-Agent', async (t) => {
  const chrome = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36'
  const known: [string, string | undefined, string | undefined][] = [
    [chrome, 'Chrome', 'Linux'],
    [`${chrome} Edg/130.0.0.0`.replace('X11; Linux x86_64', 'Windows NT 10.0; Win64; x64'), 'Edge', 'Windows'],
    ['Mozilla/5.0 (Macintosh; Intel Mac OS X 14.1; rv:131.0) Gecko/20100101 Firefox/131.0', 'Firefox', 'macOS'],
    ['Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) ' +
      'Version/18.0 Mobile/15E148 Safari/604.1', 'Safari', 'iPhone'],
    ['Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile Safari/537.36',
      'Chrome', 'Android'],
    ['curl/8.10.1', 'curl', undefined],
    ['lightMyRequest', undefined, undefined],
    ['', undefined, undefined],
    ['<script>alert(1)</script>', undefined, undefined],
    ['x'.repeat(100_000), undefined, undefined],
  ]
  for (const [userAgent, browser, system] of known) {
    t.strictSame(describeUserAgent(userAgent), { browser, system }, userAgent.slice(0, 80))
  }
})

t.test('15.2 one term for each thing in texts of pages and mails', async (t) => {
  const textsOf = async (tag: 'en' | 'de') => [
    ...Object.values(await readCatalogue(tag)),
    ...Object.values(await readConsoleTexts(tag)),
    ...Object.values(mailTexts[tag]).flatMap((mail) => Object.values<string>(mail)),
    // The name of a value is none.
  ].map((text) => text.replaceAll(/\{\w+\}/g, ''))
  const strays = async (tag: 'en' | 'de', pattern: RegExp) => (await textsOf(tag)).filter((text) => pattern.test(text))
  t.strictSame(await strays('en', /\bsign(ed)?[ -]?in\b|\blog ?on\b|\bemails?\b|\bregist/i), [])
  t.strictSame(await strays('de', /\beinlog|\blogin\b|\be-?mail-?add?ress\b|\bemails?\b/i), [])
})
