import { copyButton, docsPage, LENS, type DocsPlaces } from './docs-page.ts'
import { attributes, html, trusted, type Html, type HtmlValue } from './html.ts'
import { createSample, type Schema } from './samples.ts'

/** The body of a failure. */
interface Failure { error?: string, code?: string, errors?: readonly string[] }

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
  'x-failures'?: Readonly<Record<string, Failure>>
}

/** An OpenAPI document, as far as the page shows it. */
export interface ReferenceDocument {
  info: { title: string, version: string, description?: string }
  tags: readonly { name: string, description?: string }[]
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  components: Components
}

interface Components { schemas: Readonly<Record<string, Schema>>, responses?: Readonly<Record<string, Reply>> }

interface Given { path: string, method: string, operation: Operation }

/**
 * Returns the page of the API reference (contract 15.3): a list of all operations, and each of them with its
 * parameters, bodies and responses beside the command that sends it, which is also a form that docs.js sends. It can be
 * read without scripts. `signIn` is the form with which a user signs in.
 */
export function renderReference (document: ReferenceDocument, places: DocsPlaces & { signIn: string }): Html {
  const { info, tags, components } = document
  const { docs, base, signIn, hasGraphql } = places
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })))
  const groups = tags.map((tag) => ({
    ...tag,
    own: operations
      .filter(({ operation }) => operation.tags.includes(tag.name))
      .toSorted((one, other) => placeOf(one) - placeOf(other))
  }))
  const title = `${info.title} API`
  return docsPage({
    title,
    current: 'reference',
    places,
    data: { 'data-base': base },
    scripts: ['sign-in.js', 'docs.js'],
    end: html`<button type="button" class="bar-button bar-lens" data-find aria-label="Find an operation" hidden>${LENS}</button>
${trusted(signIn)}`,
    contents: {
      label: 'Operations',
      top: html`<div class="find" id="find" hidden><label class="visually-hidden" for="filter">Find an operation</label><input${attributes({
        id: 'filter', type: 'search', autocomplete: 'off', placeholder: 'Find an operation', 'aria-describedby': 'found',
      })}><kbd aria-hidden="true">/</kbd></div>`,
      links: html`<p class="hint" id="found" role="status"></p>
<ul class="index">
${groups.map(({ name, own }) => html`<li><a class="group" href="#tag-${name}">${titleOf(name)}</a><ul>
${own.map(renderLink)}</ul></li>
`)}<li><a class="group" href="#schemas">Schemas</a></li>
</ul>`,
    },
    content: html`<section class="intro">
<h1>${title}</h1>
<p class="muted">Version ${info.version} · <a href="${docs}/json">OpenAPI</a>${
  hasGraphql && html` · <a href="${docs}/schema.graphql">GraphQL schema</a>`}</p>
<p class="late" id="late">The scripts of this page have not loaded. It can be read, and sends no requests. Load it again, and if that does not help, allow them in the browser or its extensions.</p>
<noscript><p>Without JavaScript, this page can be read, and sends no requests.</p></noscript>
${prose(info.description)}
<details class="fold" id="token">
<summary>Use a token or an API key</summary>
<p class="hint">Requests carry the token of your session. Another one that is given here takes its place, until it is removed or the tab is closed.</p>
<form id="token-form"><div class="field"><label for="pasted">Token</label><input${attributes({
  id: 'pasted', type: 'password', autocomplete: 'off', spellcheck: 'false', required: true,
})}></div>
<div class="actions"><button class="small">Use this token</button><button type="button" class="plain small" hidden>Remove the token</button></div></form>
</details>
<p id="token-status" role="status"></p>
</section>
${groups.map(({ name, description, own }) => html`<section class="tag" id="tag-${name}">
<header><h2>${titleOf(name)}</h2><p>${description}</p></header>
${own.map((given) => renderOperation(given, components))}
</section>
`)}
<section class="tag" id="schemas">
<header><h2>Schemas</h2><p>The objects that bodies consist of</p></header>
${Object.entries(components.schemas).map(([name, schema]) => html`<details class="fold schema" id="schema-${name}">
<summary><h3><code>${name}</code></h3></summary>
${schema.description && prose(schema.description)}
${renderSchema(schema)}
</details>
`)}
</section>`,
  })
}

// A resource is before what belongs to one, and what is outside of the API itself after both.
const placeOf = ({ path }: Given): number => /^\/api\/\w+\/\{id\}\/./.test(path) ? 1 : path.startsWith('/api/') ? 0 : 2

const INITIALS: Readonly<Record<string, string>> = { api: 'API', totp: 'TOTP' }

/** Returns a name as people write it: `listApiKeys` and `api-keys` as "List API keys" and "API keys". */
function titleOf (name: string): string {
  const words = name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).split(/[ -]/)
  const text = words.map((word) => INITIALS[word] ?? word).join(' ')
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
}

// "Create a user" says no more than "Create user".
const isTitle = (summary: string, id: string): boolean =>
  summary.replaceAll(/ (?:an?|the)\b/g, '').toLowerCase() === titleOf(id).toLowerCase()

const SHORT: Readonly<Record<string, string>> = { DELETE: 'DEL', OPTIONS: 'OPT' }

function renderLink ({ method, path, operation: { operationId: id } }: Given): Html {
  return html`<li><a href="#operation-${id}" data-words="${method} ${path} ${id}"><span class="method ${method.toLowerCase()}">${
    SHORT[method] ?? method}</span> <span>${titleOf(id)}</span></a></li>
`
}

function renderOperation (given: Given, components: Components): Html {
  const { path, method, operation } = given
  const { operationId: id, summary, description, parameters = [], requestBody, responses, security = [] } = operation
  const replies = Object.entries(responses).map(([status, reply]) => ({ status, ...resolve(reply, components) }))
  const accepted = Object.keys(replies.find(({ status }) => status.startsWith('2'))?.content ?? {})
  const media = Object.entries(requestBody?.content ?? {})
  const schemes = security.flatMap(Object.keys)
  return html`<article class="operation" id="operation-${id}">
<form${attributes({ 'aria-label': `${method} ${path}`, 'data-method': method, 'data-path': path })}>
<div class="words">
<h3><a href="#operation-${id}">${titleOf(id)}</a></h3>
<p class="path" tabindex="0"><span class="method ${method.toLowerCase()}">${method}</span> <code>${path}</code></p>
${!isTitle(summary, id) && html`<p>${inline(summary)}.</p>`}
${description && prose(description)}
<p class="muted">${schemes.length === 0
  ? 'Needs no login.'
  : `Needs ${schemes.map((name) => name === 'bearer' ? 'a token or an API key' : 'the cookie of a session').join(', or ')}.`}</p>
${renderParameters(id, parameters, accepted, media.map(([type]) => type))}
${media[0] && renderBody(id, media[0], requestBody!.required === true, components)}
<h4>Responses</h4>
${renderReplies(replies, operation)}
</div>
<div class="try">
<div class="panel request"><div class="panel-head"><span>Request</span>${copyButton}</div>
<pre tabindex="0" role="group" aria-label="curl"><code>${curlOf(given, accepted)}</code></pre>
<div class="panel-foot" hidden><button class="small">Send</button><span class="muted">as nobody</span></div></div>
<div class="answer" aria-live="polite">${renderSample(replies, components)}</div>
</div>
</form>
</article>
`
}

function renderParameters (
  id: string, all: readonly Parameter[], accepted: readonly string[], types: readonly string[]
): HtmlValue {
  const acceptance = { 'data-in': 'header', 'data-name': 'Accept' }
  const required = all.filter((parameter) => parameter.required === true)
  const optional = [
    ...all.filter((parameter) => parameter.required !== true).map((parameter) => renderInput(id, parameter)),
    ...accepted.length > 1 ? [renderChoice(`${id}-accept`, 'Accept', accepted, acceptance)] : [],
    ...types.length > 1 ? [renderChoice(`${id}-type`, 'Content-Type', types, { 'data-type': true })] : [],
  ]
  if (required.length + optional.length === 0) return undefined
  return html`<h4>Parameters</h4>
${required.length > 0 && html`<ul class="params">${required.map((parameter) => renderInput(id, parameter))}</ul>`}
${optional.length > 0 && html`<details class="fold optional"><summary>${
  optional.length === 1 ? '1 optional parameter' : `${optional.length} optional parameters`}</summary>
<ul class="params">${optional}</ul></details>`}`
}

// The command as it can be shown without scripts, which know the address and what is typed.
function curlOf (
  { method, path, operation: { requestBody, security = [] } }: Given, accepted: readonly string[]
): string {
  const [type, { example }] = Object.entries(requestBody?.content ?? {})[0] ?? ['', {}]
  return [
    `curl -X ${method} "$BASE${path}"`,
    ...accepted.length > 1 ? [`-H 'Accept: ${accepted[0]}'`] : [],
    ...security.some((scheme) => 'bearer' in scheme) ? ['-H "Authorization: Bearer $TOKEN"'] : [],
    ...example === undefined ? [] : [`-H 'Content-Type: ${type}'`, `--data-raw '${JSON.stringify(example)}'`],
  ].join(' \\\n  ')
}

/** Returns what a response is like that says that the operation has succeeded. */
function renderSample (replies: readonly (Reply & { status: string })[], components: Components): HtmlValue {
  const reply = replies.find(({ status }) => status < '4' && status !== '304')
  if (!reply) return undefined
  const [type, media] = Object.entries(reply.content ?? {})[0] ?? []
  const text = media?.schema && type!.endsWith('json')
    ? JSON.stringify(createSample(media.schema, components.schemas), null, 2)
    : undefined
  return html`<div class="panel response"><div class="panel-head"><span>Response</span> <span class="badge ${
    reply.status < '3' ? 'success' : 'info'}">${reply.status}</span></div>
${text === undefined
  ? html`<p class="muted">${type && type !== 'application/json' ? html`<code>${type}</code>` : 'No body'}</p>`
  : html`<pre tabindex="0" role="group" aria-label="Example of a response"><code>${text}</code></pre>`}</div>`
}

function renderInput (id: string, { name, in: place, description, required = false, schema = {} }: Parameter): Html {
  const control = {
    id: `${id}-${place}-${name}`,
    'data-in': place,
    'data-name': name,
    required,
    'aria-describedby': `${id}-${place}-${name}-hint`,
  }
  return html`<li><div class="about"><label for="${control.id}"><code>${name}</code></label> <span class="muted">${
    place}</span>${required && html` <span class="required">required</span>`}
<p class="hint" id="${control['aria-describedby']}">${describe(schema)}${description && html`. ${inline(description)}`}</p></div>
${renderControl(schema, control)}</li>
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
  return html`<li><div class="about"><label for="${id}"><code>${label}</code></label> <span class="muted">header</span></div>
<select${attributes({ id, ...given })}>${values.map((value) => html`<option>${value}</option>`)}</select></li>
`
}

function renderBody (
  id: string, [type, { schema = {}, example }]: [string, Media], required: boolean, { schemas }: Components
): Html {
  const target = schema.$ref ? schemas[nameOf(schema.$ref)] ?? {} : schema
  const attributesOf = { id: `${id}-body`, 'data-body': type, autocomplete: 'off', spellcheck: 'false' }
  const heading = html`<h4>Body <span class="muted">${type}${!required && ', optional'}</span></h4>
`
  if (type === 'multipart/form-data' || type === 'application/x-www-form-urlencoded') {
    return html`${heading}<ul class="params" data-body="${type}">
${Object.entries(target.properties ?? {}).map(([name, member]) => {
    const required = target.required?.includes(name)
    const control = {
      id: `${id}-body-${name}`,
      name,
      required,
      'aria-describedby': `${id}-body-${name}-hint`,
      ...member.contentMediaType ? { type: 'file' } : { value: member.examples?.[0] as string | undefined },
    }
    return html`<li><div class="about"><label for="${control.id}"><code>${name}</code></label>${
      required && html` <span class="required">required</span>`}
<p class="hint" id="${control['aria-describedby']}">${describe(member)}${member.description && html`. ${inline(member.description)}`}</p></div>
${renderControl(member, control)}</li>
`
  })}</ul>
`
  }
  if (!type.endsWith('json')) {
    return html`${heading}<div class="field"><label for="${id}-body">File to send</label><input${attributes({ ...attributesOf, type: 'file' })}></div>\n`
  }
  const text = example === undefined ? '' : JSON.stringify(example, null, 2)
  return html`${heading}${renderSchema(target)}
<div class="field"><label for="${id}-body">Body to send</label>
<textarea${attributes({ ...attributesOf, class: 'code', rows: Math.min(16, Math.max(3, text.split('\n').length)) })}>\n${text}</textarea></div>
`
}

// Failures that any operation may have, and that say the same in all of them.
const COMMON = ['408', '413', '415', '500', '503']

function renderReplies (replies: readonly (Reply & { status: string })[], operation: Operation): Html {
  const common = replies.filter(({ status }) => COMMON.includes(status))
  const own = replies.filter((reply) => !common.includes(reply))
  return html`<ul class="replies">${own.map((reply) => renderReply(reply, operation))}</ul>
<details class="fold"><summary>${common.length} failures that any operation may have</summary><ul class="replies">${
    common.map((reply) => renderReply(reply, operation))}</ul></details>`
}

function renderReply (
  { status, description, headers = {}, content = {} }: Reply & { status: string }, operation: Operation
): Html {
  const names = Object.keys(headers)
  // A failure has one of three shapes, which its example shows.
  const [media] = status >= '4' ? Object.values(content) : []
  // What the shared example of a conflict says is true of some operations only.
  const shared = status === '409' ? undefined : media?.example as Failure | undefined
  const failure = operation['x-failures']?.[status] ?? shared
  const tone = status < '3' ? 'success' : status < '4' ? 'info' : status < '5' ? 'warning' : 'error'
  const bodies = media ? [] : Object.entries(content)
  return html`<li><span class="badge ${tone}">${status}</span><div>${failure
    ? html`${failure.code && html`<code>${failure.code}</code> `}<span class="says">${failure.error ?? (failure.errors ?? []).join('. ')}</span>`
    : inline(description ?? '')}${names.length > 0 && html` <span class="muted">with ${names.map((name, index) =>
      html`${index > 0 && ', '}<code>${name}</code>`)}</span>`}${bodies.map(([type, { schema }]) =>
    html`<details class="fold"><summary><code>${type}</code></summary>${schema && renderSchema(schema)}</details>`)}</div></li>
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

const nameOf = ($ref: string): string => $ref.slice($ref.lastIndexOf('/') + 1)

function resolve (reply: Reply, { responses = {} }: Components): Reply {
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
