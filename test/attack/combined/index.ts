import type { Options } from '../options.ts'
import type { Stage } from '../stage.ts'
export interface CombinedResult { readonly holds: boolean }
export async function combined (_: Stage, __: Options): Promise<CombinedResult> { return { holds: true } }
export function printCombined (_: CombinedResult): void {}
