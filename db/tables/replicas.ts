import type { Generated } from 'kysely'

/** A row by which nodes recognise the standbys of the database (contract 14.7). */
export interface ReplicaMarksTable {
  id: string
  created_at: Generated<Date>
}
