import { getOperationAST, getVariableValues, type DocumentNode, type GraphQLSchema } from 'graphql'
import { limits, refused } from '../../schema/graphql-limits.ts'

// Up to this many characters, quoting all of them in each of fifty errors does no harm.
const SMALL = 1000

/** Returns whether variables are large. Throws a `GraphQLError` if they have too many values. */
export function areLarge (variables: object): boolean {
  let [values, characters] = [0, 0]
  const rest: object[] = [variables]
  // No recursion, because they may be nested deeply.
  for (let object = rest.pop(); object; object = rest.pop()) {
    for (const name in object) {
      if (++values > limits.values) throw refused(`The variables have more than ${limits.values} values`)
      const value = (object as Record<string, unknown>)[name]
      characters += name.length
      if (typeof value === 'string') characters += value.length
      else if (typeof value === 'object' && value !== null) rest.push(value)
    }
  }
  return characters > SMALL
}

/**
 * Throws the first problem of the variables of an operation, a `GraphQLError`. The execution would report up to fifty problems, and
 * quote the whole value in each: 540 KB of variables took 4 s, and a response of 27 MB.
 */
export function checkVariables (
  schema: GraphQLSchema, document: DocumentNode, operationName: string | undefined, variables: Record<string, unknown>
): void {
  const definitions = getOperationAST(document, operationName)?.variableDefinitions ?? []
  const { errors: [error] = [] } = getVariableValues(schema, definitions, variables, { maxErrors: 1 })
  if (error) throw error
}
