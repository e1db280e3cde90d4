import neostandard from 'neostandard'

export default [
  // Scripts of pages.
  ...neostandard({
    env: ['browser'], files: ['**/pages/*.js', 'routes/account-pages/assets/*.js', 'examples/browser/*.js'],
  }),
  ...neostandard({
    ts: true, ignores: ['node_modules', 'dist', 'dist-client', 'test/client/.snippets', '.tap', 'data', 'routes/graphql/types.ts', 'client/api.ts'],
  }),
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
