import type { IncomingHttpHeaders } from 'node:http'
import type { Element } from './documents.ts'
import { InvalidAnswer, type AnswerHead, type StoreAnswer } from './requests.ts'

/** Returns the entity tag, which every store gives to an object, and to a part. */
export function tagOf ({ etag }: IncomingHttpHeaders): string | undefined {
  const tag = etag?.replace(/^W\//, '')
  return tag === '""' ? undefined : tag || undefined
}

/** Returns the length of the body, or undefined if the response does not say it. */
export function lengthOf ({ 'content-length': length }: IncomingHttpHeaders): number | undefined {
  return length === undefined ? undefined : Number(length)
}

/** Returns the entity tag. Throws `InvalidAnswer` if there is none. */
export function requireTag (answer: AnswerHead): string {
  const tag = tagOf(answer.headers)
  if (tag === undefined) throw new InvalidAnswer(answer, 'without an ETag')
  return tag
}

/** Returns the entity tag of a response that has no body otherwise. Throws `InvalidAnswer`. */
export function requireTagOnly (answer: StoreAnswer): string {
  if (answer.text.trim() !== '') throw new InvalidAnswer(answer, 'and a body')
  return requireTag(answer)
}

/** Returns the root of the document. Throws `InvalidAnswer` if it has another name, or if there is no document. */
export function requireDocument (answer: StoreAnswer, name: string): Element {
  if (answer.root?.name !== name) throw new InvalidAnswer(answer, `without a complete ${name}`)
  return answer.root
}

/** Returns the text of an element. Throws `InvalidAnswer` if there is none. */
export function requireText (answer: StoreAnswer, element: Element, name: string): string {
  const text = element.textOf(name)
  if (!text) throw new InvalidAnswer(answer, `without a ${name}`)
  return text
}

/** Returns the number in an element, which is not negative. Throws `InvalidAnswer` if there is none. */
export function requireNumber (answer: StoreAnswer, element: Element, name: string): number {
  const text = requireText(answer, element, name)
  if (!/^\d{1,15}$/.test(text)) throw new InvalidAnswer(answer, `without a number as ${name}`)
  return Number(text)
}

/** Returns the time in an element, in milliseconds since 1970. Throws `InvalidAnswer` if there is none. */
export function requireTime (answer: StoreAnswer, element: Element, name: string): number {
  const time = Date.parse(requireText(answer, element, name))
  if (Number.isNaN(time)) throw new InvalidAnswer(answer, `without a time as ${name}`)
  return time
}
