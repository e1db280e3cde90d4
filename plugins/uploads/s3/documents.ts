// The documents of S3 are small, and without DTDs. A library would bring more than what is here, and most of those that
// are small accept documents that are cut off.

/** An element of a document of the store. */
export class Element {
  readonly name: string
  readonly children: Element[] = []
  /** The text between its tags, without that of its children. */
  text = ''

  constructor (name: string) {
    this.name = name
  }

  /** Returns the text of the first child with this name, or undefined. */
  textOf (name: string): string | undefined {
    return this.children.find((child) => child.name === name)?.text
  }

  /** Returns the children with this name. */
  all (name: string): Element[] {
    return this.children.filter((child) => child.name === name)
  }
}

const TAG = /<(\/?)(?:[A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)((?:\s+[\w.:-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>/y

/**
 * Returns the root of an XML document, with names that have no prefix. Undefined if the text is none, such as one that
 * is empty or cut off, or an HTML page.
 */
export function readDocument (xml: string): Element | undefined {
  const open: Element[] = []
  let root: Element | undefined
  for (let at = xml.startsWith('\uFEFF') ? 1 : 0; at < xml.length;) {
    const parent = open.at(-1)
    const start = xml.indexOf('<', at)
    if (start !== at) {
      const raw = xml.slice(at, start === -1 ? undefined : start)
      const text = decode(raw)
      if (text === undefined || (!parent && raw.trim() !== '')) return undefined
      if (parent) parent.text += text
      at += raw.length
      continue
    }
    const [begin, end] = SPANS.find(([begin]) => xml.startsWith(begin, at)) ?? []
    if (begin && end) {
      const until = xml.indexOf(end, at + begin.length)
      if (until === -1 || (begin === CDATA && !parent)) return undefined
      if (begin === CDATA) parent!.text += xml.slice(at + begin.length, until)
      at = until + end.length
      continue
    }
    TAG.lastIndex = at
    const [tag, isEnd, name, attributes, isEmpty] = TAG.exec(xml) ?? []
    if (tag === undefined) return undefined
    at += tag.length
    if (isEnd) {
      if (open.pop()?.name !== name || attributes || isEmpty) return undefined
      continue
    }
    const element = new Element(name!)
    if (parent) parent.children.push(element)
    else if (root) return undefined
    else root = element
    if (!isEmpty) open.push(element)
  }
  return open.length === 0 ? root : undefined
}

const CDATA = '<![CDATA['
const SPANS = [['<!--', '-->'], ['<?', '?>'], [CDATA, ']]>']] as const

/** Returns the body that completes an upload of several parts. */
export function completionOf (parts: readonly { number: number, tag: string }[]): string {
  const items = parts.map(({ number, tag }) =>
    `<Part><PartNumber>${number}</PartNumber><ETag>${encode(tag)}</ETag></Part>`)
  return `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${items.join('')}</CompleteMultipartUpload>`
}

const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

const encode = (text: string): string =>
  text.replace(/[&<>"]/g, (char) => `&${Object.keys(named).find((name) => named[name] === char)};`)

// Returns undefined for an entity that XML does not have.
function decode (text: string): string | undefined {
  let isValid = true
  const decoded = text.replace(/&(?:#(\d{1,7});|#x([\da-fA-F]{1,6});|(amp|lt|gt|quot|apos);)?/g, (_, decimal, hex, name) => {
    if (name) return named[name]!
    const code = decimal ? Number(decimal) : parseInt(hex, 16)
    isValid &&= code <= 0x10_ffff
    return isValid ? String.fromCodePoint(code) : ''
  })
  return isValid ? decoded : undefined
}
