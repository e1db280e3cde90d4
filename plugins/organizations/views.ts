import type { OrganizationRow } from '../../db/organizations/organizations.ts'
import { shapeOf, showFields } from '../../schema/fields/fields.ts'
import { createEntityTag } from '../../schema/http/entity-tag.ts'
import { readableFields, type OrganizationFields } from '../../schema/organizations/organization-fields.ts'
import type { Caller } from '../access/caller.ts'

/** How organisations are shown to readers who see the same of them. */
export interface OrganizationView {
  /** A text that is the same for views that show the same. */
  readonly key: string
  /** Returns an organisation without the fields that these readers may not see, or that have no value. */
  show<Row extends OrganizationRow> (organization: Row): Row
  /** Returns the entity tag of what they see (contract 10.1). */
  tagOf (organization: Pick<OrganizationRow, 'rowVersion'>): string
}

/** Returns whether somebody reads and writes every field of organisations. */
export const isAdmin = ({ isHost, actor }: Pick<Caller, 'isHost' | 'actor'>): boolean =>
  isHost || actor?.role === 'admin'

/** Returns a function that returns how a caller sees organisations. */
export function createViews (fields: OrganizationFields): (caller: Pick<Caller, 'isHost' | 'actor'>) => OrganizationView {
  const [ofAdmins, ofMembers] = [createView(fields, fields), createView(fields, readableFields(fields, false))]
  return (caller) => isAdmin(caller) ? ofAdmins : ofMembers
}

function createView (all: OrganizationFields, shown: OrganizationFields): OrganizationView {
  const key = all.length === 0 ? '' : JSON.stringify(shapeOf(shown))
  const tagOf = createEntityTag(key)
  return {
    key,
    show: (organization) => all.length === 0 ? organization : showFields(all, shown, organization),
    tagOf: ({ rowVersion }) => tagOf(rowVersion),
  }
}
