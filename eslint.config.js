import compat from 'eslint-plugin-compat'
import neostandard from 'neostandard'
import { newFeatures } from './scripts/new-features.ts'

const pageScripts = ['**/pages/*.js', 'routes/**/assets/*.js', 'examples/{browser,html}/*.js']

// Static members, which the plugin does not know.
const newMembers = newFeatures.filter(({ length }) => length === 2).map(([object, name]) => ({
  object, property: name.replace(/_static$/, ''), message: 'A supported browser lacks it.',
}))

export default [
  ...neostandard({ env: ['browser'], files: pageScripts }),
  ...neostandard({
    ts: true, ignores: ['node_modules', 'dist', 'dist-client', 'test/client/.snippets', '.tap', 'data', 'routes/graphql/types.ts', 'client/api.ts'],
  }),
  // What browsers run, the functions included that pages send as they stand, uses only what those of `browserslist` in
  // package.json have.
  {
    ...compat.configs['flat/recommended'],
    files: [
      ...pageScripts, 'client/**/*.ts', 'schema/strings/user-agent.ts', 'schema/translations/{describe-input,format}.ts',
    ],
    settings: { lintAllEsApis: true },
    rules: { ...compat.configs['flat/recommended'].rules, 'no-restricted-properties': ['error', ...newMembers] },
  },
  // A schema and the type that is derived from it have the same name.
  { rules: { '@typescript-eslint/no-redeclare': 'off', 'no-void': 'off' } },
  {
    rules: {
      // Strings are not split, so that they can be found. SQL and regular expressions have lines of their own.
      '@stylistic/max-len': ['error', {
        code: 120,
        ignoreUrls: true,
        ignoreStrings: true,
        ignoreTemplateLiterals: true,
        ignoreRegExpLiterals: true,
      }],
    },
  }
]
