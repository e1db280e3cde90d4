// The documents of S3 are flat, and only a handful of their elements matters.

/** Returns the text of the first element with this name, or undefined. */
export function textOf (xml: string, name: string): string | undefined {
  const [, text] = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml) ?? []
  return text === undefined ? undefined : decode(text)
}

/** Returns the contents of all elements with this name. */
export function elementsOf (xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}>(.*?)</${name}>`, 'gs'))].map(([, content]) => content!)
}

/** Returns the body that completes an upload of several parts. */
export function completionOf (parts: readonly { number: number, tag: string }[]): string {
  const items = parts.map(({ number, tag }) =>
    `<Part><PartNumber>${number}</PartNumber><ETag>${tag.replaceAll('"', '&quot;')}</ETag></Part>`)
  return `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${items.join('')}</CompleteMultipartUpload>`
}

const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

const decode = (text: string): string =>
  text.replace(/&(?:#(\d{1,6})|#x([\da-f]{1,5})|(\w{1,4}));/gi, (whole, decimal, hex, name) => {
    const code = decimal ? Number(decimal) : hex ? parseInt(hex, 16) : undefined
    return code === undefined ? named[name] ?? whole : String.fromCodePoint(code)
  })
