import type { Fields } from './fields.ts'

/** Returns a schema of an object with the fields of a host. */
export const withFields = (
  schema: { properties: object }, fields: Fields, kind: 'input' | 'output'
): object => ({
  ...schema,
  properties: { ...schema.properties, ...Object.fromEntries(fields.map((field) => [field.name, field[kind]])) },
})

/** Returns a schema in which some schemas are replaced, wherever they occur. The type of the result is that before. */
export function replaceSchemas<Node> (node: Node, replacementOf: (node: object) => object | undefined): Node {
  if (typeof node !== 'object' || node === null) return node
  const replacement = replacementOf(node)
  if (replacement) return replacement as Node
  if (Array.isArray(node)) return node.map((one) => replaceSchemas(one, replacementOf)) as Node
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, replaceSchemas(value, replacementOf)])
  ) as Node
}

/**
 * Returns a schema of a response for the serializer. It writes what is stored, which may not match the schema of a
 * field any more: texts without regard to their format, and JSON with every member.
 */
export function forSerializer<Schema> (schema: Schema): Schema {
  return replaceSchemas(schema, ({ hostField }: { hostField?: unknown }) =>
    typeof hostField !== 'string' ? undefined : hostField === 'json' ? {} : { type: hostField })
}
