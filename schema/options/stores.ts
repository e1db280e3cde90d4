import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { placeOfS3, S3, type GivenS3 } from './s3.ts'

// The stores that uploads may be in besides the folder, each once: the option of a host, which has the name of the
// store, and where it is. `plugins/uploads/open-backend.ts` opens them, `node/settings/schema.ts` has their settings.

/** The option of each store. */
export const stores = { s3: Type.Optional(S3) }

export type StoreName = keyof typeof stores
export type StoreOptions<Name extends StoreName> = Readonly<NonNullable<Static<typeof stores[Name]>>>

/** What a host gives. */
export interface GivenStores {
  /** The bucket of an S3 in which uploads are stored. A member that is absent keeps its default. */
  s3?: GivenS3 | undefined
}

const places: { readonly [Name in StoreName]: (options: NonNullable<GivenStores[Name]>) => string } = { s3: placeOfS3 }

export const storeNames = Object.keys(stores) as StoreName[]

/** Where new uploads are stored. */
export type StorageName = 'folder' | StoreName
export const storages: readonly StorageName[] = ['folder', ...storeNames]

/** Returns where a store is, for people; undefined without its option. */
export function placeOfStore (name: StoreName, { [name]: options }: GivenStores): string | undefined {
  return options && places[name](options)
}

/** Returns the members of a store's option that have no default. */
export function requiredOf (name: StoreName): string[] {
  const { properties, required = [] } = stores[name]
  return required.filter((member) => !('default' in (properties as Record<string, TSchema>)[member]!))
}
