import { requiredOf, storeNames, type StoreName } from '../../schema/options/stores.ts'
import { optionOfSetting } from './schema.ts'

/** The names of the settings of stores, which set members of their options. */
export type StoreSetting = {
  [Name in keyof typeof optionOfSetting]: typeof optionOfSetting[Name] extends `${StoreName}.${string}` ? Name : never
}[keyof typeof optionOfSetting]

/** Returns the names of the settings that set members of a store's option. */
export const settingsOfStore = (store: StoreName): StoreSetting[] =>
  Object.entries(optionOfSetting).flatMap(([name, path]) => path.startsWith(`${store}.`) ? [name as StoreSetting] : [])

/** Returns the settings without which a store cannot be used. */
export function requiredSettingsOf (store: StoreName): StoreSetting[] {
  const required = new Set(requiredOf(store).map((member) => `${store}.${member}`))
  return settingsOfStore(store).filter((name) => required.has(optionOfSetting[name]))
}

/** The names of the settings that say where uploads are. */
export const storageSettings: readonly string[] = ['DATA_DIR', 'UPLOADS_TO', ...storeNames.flatMap(settingsOfStore)]
