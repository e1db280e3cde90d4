import type { OperationNode, SelectQueryNode } from 'kysely'

/**
 * Returns whether a statement only reads, and therefore never waits for a row lock: a SELECT without a locking clause whose
 * common table expressions are all of the same kind. Raw SQL counts as a write.
 */
export function isRead (node: OperationNode): boolean {
  if (node.kind !== 'SelectQueryNode') return false
  const { endModifiers, with: ctes } = node as SelectQueryNode
  return endModifiers === undefined && (ctes === undefined || ctes.expressions.every(({ expression }) => isRead(expression)))
}
