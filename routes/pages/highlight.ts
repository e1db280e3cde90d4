import highlighter from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import css from 'highlight.js/lib/languages/css'
import json from 'highlight.js/lib/languages/json'
import sql from 'highlight.js/lib/languages/sql'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'

// By the names with which blocks of code in documents begin. The build bundles this module with the library.
const languages = { sh: bash, css, json, sql, ts: typescript, html: xml, yaml }
const others: Readonly<Record<string, string>> = { js: 'ts', jsx: 'ts', tsx: 'ts', vue: 'html' }
for (const [name, language] of Object.entries(languages)) highlighter.registerLanguage(name, language)

/**
 * Returns the HTML of a source, whose words are in elements with classes of highlight.js, or undefined for a language
 * that is unknown.
 */
export function highlight (source: string, language: string): string | undefined {
  const name = others[language] ?? language
  if (!Object.hasOwn(languages, name)) return undefined
  return highlighter.highlight(source, { language: name, ignoreIllegals: true }).value
}
