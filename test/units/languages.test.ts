import t from 'tap'
import { directionOf, languageTags, languages, negotiateLanguage } from '../../schema/translations/languages.ts'

t.test('15.2 readers get the language that they prefer of those that there are', async (t) => {
  const expected: [header: string | undefined, tag: string][] = [
    [undefined, 'en'],
    ['', 'en'],
    ['de', 'de'],
    ['de-AT,de;q=0.9,en;q=0.8', 'de'],
    ['nl, fr;q=0.5, de;q=0.7', 'de'],
    ['en;q=0.1, ja', 'ja'],
    ['FR-CA', 'fr'],
    ['pt-BR', 'pt'],
    ['zh', 'zh-Hans'],
    ['zh-CN,zh;q=0.9', 'zh-Hans'],
    ['zh-TW', 'zh-Hans'],
    ['zh-TW, ja;q=0.5', 'ja'],
    ['zh-TW, *;q=0.5', 'zh-Hans'],
    ['ar-EG', 'ar'],
    ['nl', 'en'],
    ['nl, *;q=0.1', 'en'],
    ['de;q=0, fr;q=0.1', 'fr'],
    ['de;q=2', 'en'],
    ['<script>, ;;, -, a-b-c-d, x-y, de;q=, fr ; q = 0.3', 'fr'],
    [`${'nl,'.repeat(1000)}de`, 'en'],
  ]
  for (const [header, tag] of expected) t.equal(negotiateLanguage(header, languageTags), tag, `${header}`.slice(0, 40))
  t.equal(negotiateLanguage('pt', ['en', 'pt-BR']), 'pt-BR')
  t.equal(negotiateLanguage('pt-PT, pt-BR;q=0.9', ['en', 'pt-BR', 'pt-PT']), 'pt-PT')
  t.equal(negotiateLanguage('zh-TW', ['en', 'zh-Hans', 'zh-Hant']), 'zh-Hant')
  t.throws(() => negotiateLanguage('de', []))
  for (const [tag, { direction }] of Object.entries(languages)) t.equal(directionOf(tag), direction, tag)
  t.strictSame(['he', 'fa-IR', 'nl', 'nonsense!'].map(directionOf), ['rtl', 'rtl', 'ltr', 'ltr'])
})
