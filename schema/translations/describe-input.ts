import { formatText } from './format.ts'

/** The name of a text about an input, with the number in it. */
export interface InputProblem {
  text: 'valueMissing' | 'valueCharacters' | 'valueLong' | 'invalidForm'
  count?: number
}

/**
 * Returns what a sentence of the API about an input of a form (contract 1.3) says, for pages in other languages, or
 * undefined if it is about another input, such as one of the host. The text stands at the field, so it does not name
 * it. Pages send this function to browsers as it stands, so it uses nothing from outside.
 */
export function describeInput (sentence: string): InputProblem | undefined {
  const [, input = '', rule = ''] = /^(the form|\w+) (.+)$/.exec(sentence) ?? []
  // Users do not see these.
  const unseen = ['the form', 'body', 'challenge', 'loginId', 'token', 'credential']
  if (unseen.includes(input)) return { text: 'invalidForm' }
  if (!['name', 'email', 'password', 'currentPassword', 'code', 'recoveryCode'].includes(input)) return undefined
  if (rule === 'is required' || rule === 'must not be blank') return { text: 'valueMissing' }
  if (rule === 'must not contain control characters') return { text: 'valueCharacters' }
  const [, count] = /^must be at most (\d+) (?:characters|bytes)$/.exec(rule) ?? []
  if (count !== undefined) return { text: 'valueLong', count: Number(count) }
  return /^must be an? \w+$/.test(rule) ? { text: 'invalidForm' } : undefined
}

/**
 * Returns what a sentence of the API says about an input, in the language of a page, or undefined as `describeInput`.
 * Pages send this function to browsers beside those that it calls.
 */
export function inputText (
  sentence: string, texts: Readonly<Record<InputProblem['text'], string>>, language: string
): string | undefined {
  const problem = describeInput(sentence)
  if (!problem) return undefined
  const count = new Intl.NumberFormat(language).format(problem.count ?? 0)
  return formatText(texts[problem.text], { count }, language)
}
