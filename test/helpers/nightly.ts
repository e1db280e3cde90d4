import t from 'tap'

/** Whether the nightly list runs (`npm run test:release`), which also has the tests that few changes break. */
export const isNightly = process.env['NIGHTLY'] === '1'

/**
 * Declares a test that only the nightly list runs, like `t.test`, because it takes long, and few changes break it. A
 * file of such tests is named `*.nightly.test.ts` instead.
 */
export const nightly: typeof t.test = isNightly ? t.test.bind(t) : (() => Promise.resolve()) as never

/** Returns the rows of a table of cases: all of them in the nightly list, otherwise `count`, from its whole length. */
export function sample<T> (rows: readonly T[], count: number): readonly T[] {
  if (isNightly || rows.length <= count) return rows
  return Array.from({ length: count }, (_, index) => rows[Math.floor(index * rows.length / count)]!)
}
