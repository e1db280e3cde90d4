import { getOperationAST, getVariableValues, type DocumentNode, type GraphQLSchema } from 'graphql'
import { limits, limitExceeded } from '../../../schema/graphql/limits.ts'

// Variables that graphql-js quotes with at most this many characters do no harm, even if each of fifty errors quotes
// all of them.
const SMALL = 500
// The characters that a quote has around a value: `, "": ` and those of a string or an object.
const AROUND_A_VALUE = 6

/**
 * Returns whether variables have so many characters that they must be checked before the execution. Throws a
 * `GraphQLError` if they have too many values.
 */
export function areLarge (variables: object): boolean {
  let [values, characters] = [0, 0]
  const rest: object[] = [variables]
  // This is not recursive, because variables may be nested deeply.
  for (let object = rest.pop(); object; object = rest.pop()) {
    for (const name in object) {
      if (++values > limits.values) throw limitExceeded(`The variables have more than ${limits.values} values`)
      const value = (object as Record<string, unknown>)[name]
      characters += name.length + AROUND_A_VALUE
      if (typeof value === 'object' && value !== null) rest.push(value)
      else characters += String(value).length
    }
  }
  return characters > SMALL
}

/**
 * Throws a `GraphQLError` for the first problem of the variables of an operation. The execution would report up to
 * fifty problems and quote the whole value in each: 540 KB of variables took 4 s and led to a response of 27 MB.
 */
export function checkVariables (
  schema: GraphQLSchema, document: DocumentNode, operationName: string | undefined, variables: Record<string, unknown>
): void {
  const definitions = getOperationAST(document, operationName)?.variableDefinitions ?? []
  const { errors: [error] = [] } = getVariableValues(schema, definitions, variables, { maxErrors: 1 })
  if (error) throw error
}
