import t from 'tap'
import { Settings } from '../../node/settings/schema.ts'
import { readSettingTexts, textOf } from '../../routes/pages/console/setting-texts.ts'
import { createUsher } from '../helpers/app.ts'
import { withConsole } from '../helpers/console.ts'

const texts = readSettingTexts()

t.test('18.1 the documents say in a sentence what each setting of a node does', async (t) => {
  const without = Object.keys(Settings.properties).filter((name) => !/^[^\d].{3,400}\.$/.test(textOf(texts, name) ?? ''))
  t.strictSame(without, [])
})

t.test('18.1 in a host, each option that is shown has a sentence', async (t) => {
  const usher = await createUsher(t, { console: true })
  const { open, read } = withConsole(usher)
  const { body } = await read('/console/settings', await open(usher.admin))
  const names = [...body.matchAll(/<th scope="row"[^>]*><code>([^<]+)<\/code>(.*?)<\/th>/g)]
  t.ok(names.length > 50)
  t.strictSame(names.filter(([, , text]) => !text!.includes('class="muted what" lang="en"')).map(([, name]) => name), [])
})
