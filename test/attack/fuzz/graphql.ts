import type { Actor } from '../actors.ts'
import { forbiddenMark, type Attack, type Lane } from '../context.ts'
import { describe, exchange, type Request } from '../exchange.ts'
import type { Random } from '../random.ts'
import type { Reply } from '../reply-parser.ts'
import { hostileJson, hostileTexts, writeJson } from '../values.ts'
import { generateQuery, generateSelection } from './graphql-documents.ts'

const NAME = 'graphql'
const PIPELINED = 6
const LONGEST_FAILURE = 50_000
const REJECTIONS = ['UNAUTHENTICATED', 'INVALID_TOKEN', 'FORBIDDEN']

/** A GraphQL operation in the body of a request. */
export interface Sent {
  query: string
  variables?: Record<string, unknown>
  operationName?: string
  key?: 'query' | 'mutation'
}

/** An operation with the outcome that the policy demands. */
export interface Trial {
  readonly actor: Actor
  readonly sent: Sent
  /** Whether the operation must not change anything. */
  readonly isForbidden: boolean
  /** The index of the member who will own what it creates. */
  readonly author?: number
}

/** Queries and mutations generated from the SDL and sent by every kind of actor, and malformed ones. */
export const graphql: Attack = {
  name: NAME,
  weight: 70,
  async run (lane) {
    const trials = Array.from({ length: 1 + lane.random.below(PIPELINED) }, () =>
      lane.random.chance(0.6) ? generateRead(lane) : generateMutation(lane))
    const requests = trials.map((trial) => toRequest(lane.random, trial))
    const replies = await exchange(lane, NAME, requests)
    replies.forEach((reply, index) => reply && checkReply(lane, trials[index]!, reply, requests[index]!))
  },
}

function generateRead (lane: Lane): Trial {
  const { random, cast } = lane
  const actor = random.chance(0.6)
    ? cast.anonymous
    : random.chance(0.3) ? random.pick(cast.rejected) : cast.member(random.below(100))
  const query = generateQuery(random, idsOf(lane))
  return {
    actor,
    sent: { query: random.chance(0.15) ? random.mutate(query) : random.chance(0.03) ? random.pick(garbage) : query },
    isForbidden: false,
  }
}

/** Returns a mutation with the verdict of the policy. */
export function generateMutation (lane: Lane): Trial {
  const { random, cast, shared: { posts } } = lane
  const author = random.below(cast.world.members.length)
  const isLive = random.chance(0.5)
  const actor = isLive ? cast.member(author) : random.chance(0.3) ? cast.anonymous : random.pick(cast.rejected)
  if (random.chance(0.02)) {
    return {
      actor, isForbidden: true, sent: { query: CREATE, variables: { input: random.pick(invalidInputs)(random) } },
    }
  }
  const own = isLive ? posts.findLast((post) => post.author === author)?.id : undefined
  const change = random.chance(0.3) && own !== undefined ? own : undefined
  const kind = random.pick(['create', 'create', 'createForAnother', 'update', 'delete'])
  const isForbidden =
    !isLive || kind === 'createForAnother' || ((kind === 'update' || kind === 'delete') && change === undefined)
  // This is recorded before the reply, which may be lost.
  if (kind === 'delete' && change !== undefined && isLive) lane.findings.forget('posts', change)
  const title = isForbidden
    ? forbiddenMark(random)
    : random.chance(0.2) ? random.pick(hostileTexts) : `may-${random.word()}`
  return {
    actor, isForbidden, author, sent: writeMutation(lane, kind, title, change ?? random.pick(cast.world.victimPosts)),
  }
}

function writeMutation ({ random, cast }: Lane, kind: string, title: string, id: string): Sent {
  const content = random.chance(0.05) ? 'long '.repeat(random.below(14_000)) : random.pick(hostileTexts)
  const authorId = kind === 'createForAnother' ? random.pick(cast.world.victims) : undefined
  const selection = generateSelection(random, 'Post', cast.world.readers.slice(0, 10))
  const variables = { id, input: { title, content, ...authorId !== undefined && { authorId } } }
  const call = {
    update: `($id: ID!, $input: UpdatePostInput!) { done: updatePost(id: $id, input: $input) ${selection} }`,
    delete: '($id: ID!) { done: deletePost(id: $id) }',
  }[kind] ?? `($input: CreatePostInput!) { done: createPost(input: $input) ${selection.replace('{', '{ postId: id')} }`
  const name = random.chance(0.2) ? ' query' : ''
  // The mutation is sent under either key, or as one of several operations.
  if (random.chance(0.1)) return { query: `query Q { __typename } mutation M${call}`, variables, operationName: 'M' }
  return { query: `mutation${name}${call}`, variables, key: random.pick(['query', 'mutation']) }
}

const CREATE = 'mutation ($input: CreatePostInput!) { done: createPost(input: $input) { postId: id } }'
const unknownFields = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`unknown${index}`, 1]))

// An implementation that quotes the input in each error would respond with megabytes.
const invalidInputs: ((random: Random) => unknown)[] = [
  (random) => unknownFields(1 + random.below(30_000)),
  (random) => ({ title: 'x'.repeat(random.below(400_000)), ...unknownFields(1 + random.below(100)) }),
  (random) => Array.from({ length: random.below(3000) }).reduce((inner) => ({ a: inner }), {}),
  (random) => Array(random.below(30_000)).fill('x'),
]

const garbage = [
  '', ' ', '{', '}', '{}', '{ __typename', 'query', 'mutation { }', 'subscription { postCreated { id } }', '# nothing',
  '"""', '{ a'.repeat(500), '{ user(id: "',
  `{ ${'a: __typename '.repeat(600)} }`, `query ${'@include(if: true) '.repeat(100)} { __typename }`,
  '{ ...F } fragment F on Query { ...F }',
  '{ __schema { types { name fields { name args { name type { name ofType { name } } } } } } }',
  '{ posts(first: -1) { nodes { id } } }', `{ me { ${'posts(first: 1) { author { '.repeat(6)}id${' } }'.repeat(6)} } }`,
  '{"kind":"Document","definitions":[]}', '\ufeff{ __typename }',
]

function toRequest (random: Random, { actor, sent: { key = 'query', query, ...rest }, isForbidden }: Trial): Request {
  const body = random.chance(0.02) && !isForbidden
    ? random.pick(hostileJson)
    : writeBody(random, { [key]: query, ...rest })
  const type = random.chance(0.97)
    ? 'application/json'
    : random.pick(['text/plain', 'application/graphql', 'multipart/form-data; boundary=x', ''])
  return { method: 'POST', path: '/graphql', actor, headers: { 'content-type': type }, body }
}

function writeBody (random: Random, body: object): string {
  return random.chance(0.03) ? writeJson(random, body) : JSON.stringify(body)
}

interface Answer {
  data?: Record<string, unknown> | null
  errors?: { message?: unknown, extensions?: { code?: string } }[]
}

function checkReply (lane: Lane, trial: Trial, reply: Reply, request: Request): void {
  const report = (kind: 'contract' | 'server-error', what: string) =>
    lane.findings.violation(kind, NAME, `${what}: ${reply.status} ${reply.body.slice(0, 300)}`, describe(request))
  if (reply.status !== 200) return reply.status < 500 ? report('contract', 'the status of a POST is 200') : undefined
  let answer: Answer
  try {
    answer = JSON.parse(reply.body) as Answer
  } catch {
    // The harness cuts off a body of more than a mebibyte.
    return reply.body.length < 1_000_000 ? report('contract', 'the response is not JSON') : undefined
  }
  const { errors } = answer
  if (!answer.data && reply.body.length > LONGEST_FAILURE) {
    report('contract', `${reply.body.length} characters of errors`)
  }
  if (errors?.some(({ extensions }) => extensions?.code === 'INTERNAL_ERROR')) report('server-error', 'internal error')
  if (
    errors ? !errors.every(({ message, extensions }) => typeof message === 'string' && extensions?.code) : !answer.data
  ) {
    report('contract', 'the shape of the response')
  }
  checkOutcome(lane, NAME, trial, answer, () => describe(request))
}

/** Compares the outcome of an operation with the policy, for any transport. */
export function checkOutcome (
  { findings, shared }: Lane, attack: string, { actor, isForbidden, author }: Trial, { data, errors }: Answer,
  request: () => string
): void {
  const done = data?.['done'] as { postId?: string } | string | null | undefined
  const codes = errors?.map(({ extensions }) => extensions?.code ?? '') ?? []
  if (isForbidden && done != null) {
    findings.violation('authorization', attack, `a forbidden mutation by ${actor.kind} was executed`, request())
  }
  if (actor.isLive && codes.some((code) => REJECTIONS.slice(0, 2).includes(code))) {
    findings.violation('wrongly-refused', attack, `${actor.kind}: ${codes.join()}`, request())
  }
  if (isForbidden || author === undefined || done == null) return
  if (typeof done === 'string' || done.postId === undefined) return
  findings.acknowledge('posts', done.postId)
  shared.posts.push({ id: done.postId, author })
  if (shared.posts.length > 1000) shared.posts.shift()
}

function idsOf ({ cast: { world }, shared: { posts } }: Lane): string[] {
  return [...world.readers.slice(0, 20), ...world.victims.slice(0, 3), ...posts.slice(-5).map(({ id }) => id)]
}
