/** The part of JSON Schema that the API reference uses. */
export interface Schema {
  description?: string
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  minLength?: number
  maxLength?: number
  maxItems?: number
  minimum?: number
  maximum?: number
  format?: string
  pattern?: string
}

/** An operation of the REST interface. */
export interface Operation {
  /** Such as `PUT /api/users/{id}`. */
  readonly name: string
  readonly method: string
  readonly path: string
  readonly isPublic: boolean
  /** The schema of a JSON body. */
  readonly body?: Schema | undefined
  /** Whether the body is a form. Forms have their own attack. */
  readonly isForm: boolean
  readonly query: readonly { name: string, schema: Schema }[]
}

interface Described {
  security?: Record<string, unknown>[]
  parameters?: { name: string, in: string, schema: Schema }[]
  requestBody?: { content: Record<string, { schema: Schema }> }
}

/** Reads the operations from the OpenAPI document of a node. */
export async function fetchOperations (url: string): Promise<Operation[]> {
  const document = await (await fetch(`${url}/docs/json`)).json() as {
    paths: Record<string, Record<string, Described>>, components: { schemas: Record<string, Schema> }
  }
  return Object.entries(document.paths)
    .flatMap(([path, methods]) => Object.entries(methods).map(([method, described]) => {
      const { security = [], parameters = [], requestBody } = described
      return {
        name: `${method.toUpperCase()} ${path}`,
        method: method.toUpperCase(),
        path,
        isPublic: !security.some((scheme) => 'bearer' in scheme),
        body: resolve(requestBody?.content['application/json']?.schema, document.components.schemas),
        isForm: requestBody?.content['multipart/form-data'] !== undefined,
        query: parameters.filter((parameter) => parameter.in === 'query').map(({ name, schema }) => ({ name, schema })),
      }
    }))
}

function resolve (schema: Schema | undefined, schemas: Record<string, Schema>): Schema | undefined {
  return schema?.$ref === undefined ? schema : schemas[schema.$ref.split('/').at(-1)!]
}
