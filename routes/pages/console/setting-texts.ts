import { readDocument } from '../guide.ts'
import { plainText } from '../markdown.ts'

// What each setting and option does is written once, in the tables of these documents.
const DOCUMENTS = ['settings.md', 'options.md'] as const

const cellsOf = (line: string): string[] => line.slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim())

/** Returns the first sentence of a text that is more than the range of a number. */
function sentenceOf (text: string): string {
  const words = text.replace(/^[\d.]+ to \d+\.\s+/, '')
  const [sentence = `${words}.`] = /^.*?[^.]\.(?=\s+[^a-z]|$)/.exec(words) ?? []
  return sentence
}

/**
 * Returns what settings and options do, in a sentence, by their names: the first of what the documents say. There is
 * none where the documents are not installed.
 */
export function readSettingTexts (): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  for (const line of DOCUMENTS.flatMap((name) => tableLinesOf(readDocument(name) ?? ''))) {
    const [name = '', ...cells] = cellsOf(line.text)
    const sentence = sentenceOf(plainText(cells.at(-1) ?? '').replaceAll('\\|', '|'))
    for (const [, one] of name.matchAll(/`([^`]+)`/g)) texts.set(`${line.prefix}${one}`, sentence)
  }
  return texts
}

// The tables of members, such as those of `throttle`, say so in their heads.
function tableLinesOf (document: string): { prefix: string, text: string }[] {
  let prefix = ''
  return document.split('\n').flatMap((text) => {
    if (text.startsWith('| `')) return [{ prefix, text }]
    const [, group] = /^\| member of `(\w+)`/.exec(text) ?? []
    if (text.startsWith('| ')) prefix = group === undefined ? '' : `${group}.`
    return []
  })
}

/** Returns what a setting does, or what the group does to which it belongs, such as `throttle.account.burst`. */
export function textOf (texts: ReadonlyMap<string, string>, name: string): string | undefined {
  const found = texts.get(name)
  if (found !== undefined || !name.includes('.')) return found
  return textOf(texts, name.slice(0, name.lastIndexOf('.')))
}
