import neostandard from 'neostandard'

export default [
  ...neostandard({ ts: true, ignores: ['node_modules', 'dist', '.tap', 'data', 'routes/graphql/types.ts'] }),
  // Scripts of pages run in browsers.
  { files: ['routes/pages/assets/*.js'], languageOptions: { globals: { addEventListener: false, history: false, location: false } } },
  // A schema and the type that is derived from it have the same name.
  { rules: { '@typescript-eslint/no-redeclare': 'off', 'no-void': 'off' } }
]
