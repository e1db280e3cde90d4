interface Token { readonly text: string, readonly line: number }

// Comments, strings and templates are one token each, and so are names, numbers and marks. A slash after a value
// divides, and elsewhere it begins a regular expression.
const TOKEN = /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|(["'])(?:\\[\s\S]|(?!\1)[^\\\n])*\1?|[\w$\u0080-\uFFFF]+|=>|\.\.\.|\s+|[\s\S]/y
const REGULAR_EXPRESSION = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/y
const isName = (text: string) => /^[\w$\u0080-\uFFFF]/.test(text)
const isText = (text: string) => /^["']/.test(text)
// How many constants in a row may only name another one.
const MAX_STEPS = 5
const OPENING = '([{'
const CLOSING = ')]}'

/**
 * Returns the line, from 1, of a member of what a module exports by default, such as `['hooks', 'beforeLogin']`; of the
 * nearest member around it that is found; or undefined. It reads the source without parsing it completely: it follows a
 * name to the object that a constant of the module has, but neither spread objects, nor other modules, nor calls that
 * compute an object.
 */
export function findLine (source: string, path: readonly string[]): number | undefined {
  const tokens = tokensOf(source)
  let [object, line] = [exportedObject(tokens), undefined as number | undefined]
  for (const name of path) {
    if (object === undefined) break
    const key = /^\d+$/.test(name) ? nthItem(tokens, object, Number(name)) : findKey(tokens, object, name)
    if (key === undefined) break
    line = tokens[key]!.line
    object = objectOf(tokens, /^\d+$/.test(name) ? key : valueAfter(tokens, key))
  }
  return line
}

function tokensOf (source: string): Token[] {
  const tokens: Token[] = []
  let line = 1
  for (let index = 0; index < source.length;) {
    const text = source[index] === '`'
      ? templateAt(source, index)
      : expressionAt(source, index, tokens.at(-1)?.text) ?? match(TOKEN, source, index)!
    if (!/^(?:\s|\/\/|\/\*)/.test(text)) tokens.push({ text, line })
    line += text.split('\n').length - 1
    index += text.length
  }
  return tokens
}

function match (pattern: RegExp, source: string, index: number): string | undefined {
  pattern.lastIndex = index
  return pattern.exec(source)?.[0]
}

function expressionAt (source: string, index: number, before = '('): string | undefined {
  if (source[index] !== '/' || '/*'.includes(source[index + 1] ?? '')) return undefined
  const isAfterValue = isText(before) || CLOSING.includes(before) || (isName(before) && before !== 'return')
  return isAfterValue ? undefined : match(REGULAR_EXPRESSION, source, index)
}

function templateAt (source: string, start: number): string {
  let index = start + 1
  while (index < source.length && source[index] !== '`') {
    if (source[index] === '\\') index += 2
    else if (source[index] === '$' && source[index + 1] === '{') index = endOfSubstitution(source, index + 2)
    else index++
  }
  return source.slice(start, index + 1)
}

// Returns where an expression in a template ends, which may have templates itself.
function endOfSubstitution (source: string, start: number): number {
  let [index, depth] = [start, 1]
  while (index < source.length && depth > 0) {
    const char = source[index]
    if (char === '{') depth++
    if (char === '}') depth--
    index += char === '`' ? templateAt(source, index).length : 1
  }
  return index
}

// Returns the index of the bracket that opens the exported object.
function exportedObject (tokens: readonly Token[]): number | undefined {
  const index = tokens.findIndex(({ text }, index) =>
    (text === 'export' && tokens[index + 1]?.text === 'default') ||
    (text === 'module' && tokens[index + 2]?.text === 'exports' && tokens[index + 3]?.text === '='))
  if (index === -1) return undefined
  return objectOf(tokens, tokens[index]!.text === 'export' ? index + 2 : index + 4)
}

// Returns the index of the bracket that opens the object, or the list, of an expression: its own, the first argument of
// its call, as in `defineConfig({`, or that of the constant that either names.
function objectOf (tokens: readonly Token[], start: number | undefined, steps = 0): number | undefined {
  if (start === undefined) return undefined
  let index = start
  while (isName(tokens[index]?.text ?? '') || ['.', '('].includes(tokens[index]?.text ?? '')) index++
  const { text = '' } = tokens[index] ?? {}
  if (text === '{' || text === '[') return index
  const name = index > start ? tokens[index - 1]!.text : ''
  return isName(name) ? constantOf(tokens, name, steps) : undefined
}

function constantOf (tokens: readonly Token[], name: string, steps: number): number | undefined {
  const declaration = tokens.findIndex(({ text }, index) =>
    text === name && ['const', 'let', 'var'].includes(tokens[index - 1]?.text ?? ''))
  const assignment = tokens.findIndex(({ text }, index) => index > declaration && text === '=')
  // Constants may name each other in a circle.
  if (declaration === -1 || assignment === -1 || steps === MAX_STEPS) return undefined
  return objectOf(tokens, assignment + 1, steps + 1)
}

// Yields the indexes of the tokens directly inside of brackets.
function * inside (tokens: readonly Token[], opening: number): Generator<number> {
  let depth = 0
  for (let index = opening; index < tokens.length; index++) {
    const { text } = tokens[index]!
    if (CLOSING.includes(text)) depth--
    if (depth === 0 && index > opening) return
    if (depth === 1) yield index
    if (OPENING.includes(text)) depth++
  }
}

function findKey (tokens: readonly Token[], opening: number, name: string): number | undefined {
  let isKey = true
  for (const index of inside(tokens, opening)) {
    const { text } = tokens[index]!
    const key = isText(text) ? text.slice(1, -1) : text
    if (isKey && key === name && [':', ',', '}', '('].includes(tokens[index + 1]?.text ?? '')) return index
    isKey = text === ',' || (isKey && ['async', '*', 'get'].includes(text))
  }
  return undefined
}

function nthItem (tokens: readonly Token[], opening: number, count: number): number | undefined {
  let item = 0
  for (const index of inside(tokens, opening)) {
    if (item === count) return index
    if (tokens[index]!.text === ',') item++
  }
  return undefined
}

// Returns the index at which the value of a key begins. A key without one names a constant.
function valueAfter (tokens: readonly Token[], key: number): number | undefined {
  const { text } = tokens[key + 1] ?? {}
  return text === ':' ? key + 2 : text === ',' || text === '}' ? key : undefined
}
