import { attributes, html, trusted, type Html, type HtmlValue } from './html.ts'

interface Schema {
  $ref?: string
  type?: string | readonly string[]
  title?: string
  description?: string
  required?: readonly string[]
  properties?: Readonly<Record<string, Schema>>
  additionalProperties?: Schema | boolean
  items?: Schema
  anyOf?: readonly Schema[]
  enum?: readonly unknown[]
  const?: unknown
  format?: string
  pattern?: string
  default?: unknown
  examples?: readonly unknown[]
  contentMediaType?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
}

interface Media { schema?: Schema, example?: unknown }

interface Reply {
  $ref?: string
  description?: string
  headers?: Readonly<Record<string, { description?: string }>>
  content?: Readonly<Record<string, Media>>
}

interface Parameter { name: string, in: string, description?: string, required?: boolean, schema?: Schema }

interface Operation {
  operationId: string
  summary: string
  description?: string
  tags: readonly string[]
  security?: readonly Readonly<Record<string, unknown>>[]
  parameters?: readonly Parameter[]
  requestBody?: { required?: boolean, content: Readonly<Record<string, Media>> }
  responses: Readonly<Record<string, Reply>>
}

/** An OpenAPI document, as far as the page shows it. */
export interface ReferenceDocument {
  info: { title: string, version: string, description?: string }
  tags: readonly { name: string, description?: string }[]
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  components: { schemas: Readonly<Record<string, Schema>>, responses?: Readonly<Record<string, Reply>> }
}

/** Where the page finds what it needs, relative to its own address. */
export interface ReferencePlaces {
  /** The folder of the documents and files. */
  docs: string
  /** What the paths of the document are relative to. */
  base: string
  /** The form with which a user signs in. */
  signIn: string
  hasGraphql: boolean
  /** Whether the documents of Usher are beside it. */
  hasGuide: boolean
}

/**
 * Returns the page of the API reference (contract 15.3): every operation with its parameters, bodies and responses,
 * each with a form that docs.js sends. It can be read without scripts. Operations are collapsed below their tags.
 */
export function renderReference (
  document: ReferenceDocument, { docs, base, signIn, hasGraphql, hasGuide }: ReferencePlaces
): Html {
  const { info, tags, components } = document
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })))
  const file = (name: string) => `${docs}/static/${name}`
  const title = `${info.title} API`
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" type="image/svg+xml" href="${file('favicon.svg')}">
${['design.css', 'sign-in.css', 'docs.css'].map((name) => html`<link rel="stylesheet" href="${file(name)}">\n`)}</head>
<body class="page wide" data-base="${base}">
<a class="skip" href="#main">Skip to the content</a>
${trusted(signIn)}
<main class="page-main" id="main" tabindex="-1">
<header class="intro"><h1>${title}</h1>
<p class="muted">Version ${info.version} · <a href="${docs}/json">OpenAPI</a>${
  hasGraphql && html` · <a href="${docs}/schema.graphql">GraphQL schema</a>`}${hasGuide && html` · <a href="${docs}/guide">Documents</a>`}</p></header>
<p class="late" id="late">The scripts of this page have not loaded. It can be read, and sends no requests. Load it again, and if that does not help, allow them in the browser or its extensions.</p>
<noscript><p>Without JavaScript, this page can be read, and sends no requests.</p></noscript>
<div class="split">
<nav class="tabs side" aria-label="Contents"><ul>
${tags.map(({ name }) => html`<li><a href="#tag-${name}">${capitalize(name)}</a></li>\n`)}<li><a href="#schemas">Schemas</a></li>
</ul></nav>
<div>
${prose(info.description)}
<div class="field" id="find" hidden><label for="filter">Find an operation</label><input${attributes({
  id: 'filter', type: 'search', autocomplete: 'off', placeholder: 'users, passkey, DELETE …', 'aria-describedby': 'found',
})}><p class="hint" id="found" role="status"></p></div>
<details class="card" id="token">
<summary>Use a token or an API key</summary>
<p class="hint">Requests carry the token of your session. Another one that is given here takes its place, until it is removed or the tab is closed.</p>
<form id="token-form"><div class="field"><label for="pasted">Token</label><input${attributes({
  id: 'pasted', type: 'password', autocomplete: 'off', spellcheck: 'false', required: true,
})}></div>
<div class="actions"><button>Use this token</button><button type="button" class="plain" hidden>Remove the token</button></div></form>
</details>
<p id="token-status" role="status"></p>
${tags.map(({ name, description }) => {
  const own = operations.filter(({ operation }) => operation.tags.includes(name))
  return html`<details class="card tag" id="tag-${name}">
<summary><h2>${capitalize(name)}</h2> <span class="muted">${description}</span> <span class="badge">${own.length}</span></summary>
${own.map((given) => renderOperation(given, components))}
</details>
`
})}
<details class="card" id="schemas">
<summary><h2>Schemas</h2> <span class="muted">The objects that bodies consist of</span> <span class="badge">${
  Object.keys(components.schemas).length}</span></summary>
${Object.entries(components.schemas).map(([name, schema]) => html`<details class="schema" id="schema-${name}">
<summary><h3><code>${name}</code></h3></summary>
${schema.description && prose(schema.description)}
${renderSchema(schema)}
</details>
`)}
</details>
</div>
</div>
</main>
<script src="${file('sign-in.js')}"></script>
<script src="${file('docs.js')}"></script>
</body>
</html>
`
}

function renderOperation (
  { path, method, operation }: { path: string, method: string, operation: Operation },
  components: ReferenceDocument['components']
): Html {
  const { operationId: id, summary, description, parameters = [], requestBody, responses, security = [] } = operation
  const replies = Object.entries(responses).map(([status, reply]) => ({ status, ...resolve(reply, components) }))
  const accepted = Object.keys(replies.find(({ status }) => status.startsWith('2'))?.content ?? {})
  const media = Object.entries(requestBody?.content ?? {})
  const schemes = security.flatMap(Object.keys)
  return html`<details class="operation" id="operation-${id}">
<summary><h3><span class="badge method ${method.toLowerCase()}">${method}</span> <code>${path}</code> <span>${summary}</span></h3></summary>
${description && prose(description)}
<p class="muted">${schemes.length === 0
  ? 'Needs no login.'
  : `Needs ${schemes.map((name) => name === 'bearer' ? 'a token or an API key' : 'the cookie of a session').join(', or ')}.`}
Operation <code>${id}</code>.</p>
<form${attributes({ 'aria-label': `${method} ${path}`, 'data-method': method, 'data-path': path })}>
${parameters.map((parameter) => renderInput(id, parameter))}
${accepted.length > 1 && renderChoice(`${id}-accept`, 'Accept', accepted, { 'data-in': 'header', 'data-name': 'Accept' })}
${media.length > 1 && renderChoice(`${id}-type`, 'Content-Type', media.map(([type]) => type), { 'data-type': true })}
${media[0] && renderBody(id, media[0], requestBody!.required === true, components)}
<div class="actions" hidden><button>Send</button></div>
</form>
<div class="answer" aria-live="polite"></div>
<h4>Responses</h4>
<ul class="members">${replies.map(renderReply)}</ul>
</details>
`
}

function renderInput (id: string, { name, in: place, description, required = false, schema = {} }: Parameter): Html {
  const control = {
    id: `${id}-${place}-${name}`,
    'data-in': place,
    'data-name': name,
    required,
    'aria-describedby': `${id}-${place}-${name}-hint`,
  }
  return html`<div class="field">
<label for="${control.id}"><code>${name}</code> <span class="muted">${place}${!required && ', optional'}</span></label>
<p class="hint" id="${control['aria-describedby']}">${description && html`${inline(description)}. `}${describe(schema)}</p>
${renderControl(schema, control)}
</div>
`
}

/** Returns where a value is typed, or chosen if there are few. */
function renderControl (schema: Schema, given: Parameters<typeof attributes>[0]): Html {
  const values = schema.enum ?? (schema.type === 'boolean' ? [true, false] : undefined)
  if (!values) return html`<input${attributes({ ...given, autocomplete: 'off', spellcheck: 'false' })}>`
  return html`<select${attributes(given)}><option value="">not set</option>${
    values.map((value) => html`<option>${`${value}`}</option>`)}</select>`
}

function renderChoice (
  id: string, label: string, values: readonly string[], given: Parameters<typeof attributes>[0]
): Html {
  return html`<div class="field"><label for="${id}"><code>${label}</code> <span class="muted">header</span></label>
<select${attributes({ id, ...given })}>${values.map((value) => html`<option>${value}</option>`)}</select></div>
`
}

function renderBody (
  id: string, [type, { schema = {}, example }]: [string, Media], required: boolean,
  { schemas }: ReferenceDocument['components']
): Html {
  const target = schema.$ref ? schemas[nameOf(schema.$ref)] ?? {} : schema
  const attributesOf = { id: `${id}-body`, 'data-body': type, autocomplete: 'off', spellcheck: 'false' }
  const label = html`<label for="${id}-body">Body <span class="muted">${type}${!required && ', optional'}</span></label>`
  if (type === 'multipart/form-data' || type === 'application/x-www-form-urlencoded') {
    return html`<fieldset data-body="${type}"><legend>Body <span class="muted">${type}</span></legend>
${Object.entries(target.properties ?? {}).map(([name, member]) => {
    const control = {
      id: `${id}-body-${name}`,
      name,
      required: target.required?.includes(name),
      'aria-describedby': `${id}-body-${name}-hint`,
      ...member.contentMediaType ? { type: 'file' } : { value: member.examples?.[0] as string | undefined },
    }
    return html`<div class="field"><label for="${control.id}"><code>${name}</code></label>
<p class="hint" id="${control['aria-describedby']}">${member.description && html`${inline(member.description)}. `}${
  describe(member)}</p>
${renderControl(member, control)}</div>
`
  })}</fieldset>
`
  }
  if (!type.endsWith('json')) {
    return html`<div class="field">${label}<input${attributes({ ...attributesOf, type: 'file' })}></div>\n`
  }
  const text = example === undefined ? '' : JSON.stringify(example, null, 2)
  return html`<div class="field">${label}
<textarea${attributes({ ...attributesOf, class: 'code', rows: Math.min(16, Math.max(3, text.split('\n').length + 1)) })}>\n${text}</textarea></div>
<details><summary>What the body may contain</summary>${renderSchema(schema)}</details>
`
}

function renderReply (
  { status, description, headers = {}, content = {} }: Reply & { status: string }
): Html {
  const names = Object.keys(headers)
  // A failure has one of three shapes, which its example shows.
  const [failure] = status >= '4' ? Object.values(content) : []
  const example = failure?.example as { error?: string, code?: string, errors?: string[] } | undefined
  const tone = status < '3' ? 'success' : status < '4' ? 'info' : status < '5' ? 'warning' : 'error'
  return html`<li><span class="badge ${tone}">${status}</span> ${example
    ? html`${example.code && html`<code>${example.code}</code> `}${example.error ?? (example.errors ?? []).join('. ')}`
    : inline(description ?? '')}${names.length > 0 && html` <span class="muted">with ${names.map((name, index) =>
      html`${index > 0 && ', '}<code>${name}</code>`)}</span>`}${!failure && Object.entries(content).map(([type, { schema }]) =>
    html`<div><span class="muted">${type}</span> ${schema && renderSchema(schema)}</div>`)}</li>
`
}

function renderSchema (schema: Schema): Html {
  const object = schema.items?.properties ? schema.items : schema
  const members = Object.entries(object.properties ?? {})
  if (members.length === 0) return describe(schema)
  return html`${object !== schema && html`<span class="muted">array of objects</span>`}<ul class="members">${members.map(([name, member]) => {
    const isNested = Object.keys((member.items ?? member).properties ?? {}).length > 0
    return html`<li><code>${name}</code> ${isNested
      ? html`<span class="muted">${member.items ? 'array' : 'object'}</span>`
      : describe(member)}${!object.required?.includes(name) && html` <span class="muted">optional</span>`} ${
      inline(member.description ?? '')}${isNested && renderSchema(member)}</li>
`
  })}</ul>`
}

/** Returns what a value must be, in words. */
function describe (schema: Schema): Html {
  const { format, pattern, minLength, maxLength, minimum, maximum, minItems, maxItems, default: given } = schema
  const range = (low: number | undefined, high: number | undefined, unit: string) => low === undefined
    ? high !== undefined && `at most ${high}${unit}`
    : high === undefined ? `at least ${low}${unit}` : low === high ? `${low}${unit}` : `${low} to ${high}${unit}`
  const parts: HtmlValue[] = [
    kind(schema), format, range(minLength, maxLength, ' characters'), range(minimum, maximum, ''),
    range(minItems, maxItems, ' items'), pattern && html`matches <code>${pattern}</code>`,
    given !== undefined && html`by default <code>${JSON.stringify(given)}</code>`,
  ].filter(Boolean)
  return html`<span class="muted">${parts.map((part, index) => html`${index > 0 && ', '}${part}`)}</span>`
}

function kind (schema: Schema): HtmlValue {
  const { $ref, type, enum: values, const: value, anyOf, items, contentMediaType } = schema
  if ($ref) return html`<a href="#schema-${nameOf($ref)}">${nameOf($ref)}</a>`
  if (values) return values.map((one, index) => html`${index > 0 && ' | '}<code>${JSON.stringify(one)}</code>`)
  if (value !== undefined) return html`<code>${JSON.stringify(value)}</code>`
  if (anyOf) return anyOf.map((one, index) => html`${index > 0 && ' or '}${kind(one)}`)
  if (items) return html`array of ${kind(items)}`
  if (contentMediaType) return 'file'
  return typeof type === 'object' ? type.join(' or ') : type ?? 'any value'
}

const capitalize = (name: string): string => `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`

const nameOf = ($ref: string): string => $ref.slice($ref.lastIndexOf('/') + 1)

function resolve (reply: Reply, { responses = {} }: ReferenceDocument['components']): Reply {
  return reply.$ref ? responses[nameOf(reply.$ref)] ?? {} : reply
}

const prose = (text = ''): Html => html`${text.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p>\n`)}`

// The Markdown that descriptions use. Links lead to paths and to the web only.
const MARKUP = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(((?:\/|https?:\/\/)[^)\s]*)\)/g

/** Returns a sentence with its code, emphasis and links as HTML. */
function inline (text: string): Html {
  const parts: Html[] = []
  let end = 0
  for (const match of text.matchAll(MARKUP)) {
    const [whole, code, strong, label, href] = match
    parts.push(html`${text.slice(end, match.index)}`)
    if (code !== undefined) parts.push(html`<code>${code}</code>`)
    else if (strong !== undefined) parts.push(html`<strong>${strong}</strong>`)
    else parts.push(html`<a href="${href}">${inline(label!)}</a>`)
    end = match.index + whole.length
  }
  return html`${parts}${text.slice(end)}`
}
