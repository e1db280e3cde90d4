// What pages show of a record with fields of the host, and what somebody has changed of it in a form.
import { texts } from './page.js'
import { valueOf } from './values.js'

const numbers = new Intl.NumberFormat(document.documentElement.lang)

/** Shows the values of a record in fields of a form. */
export function fill (fields, record) {
  for (const field of fields) {
    const value = record[field.name]
    if (field.type === 'checkbox') field.checked = value === true
    else field.value = value ?? ''
  }
}

/** Returns the values of fields that differ from those of the record. Null stands for no value. */
export function changesOf (fields, record) {
  const changes = {}
  for (const field of fields) {
    const value = valueOf(field)
    const former = record[field.name] ?? (field.type === 'checkbox' ? false : null)
    if (value !== former) changes[field.name] = value === null && field.required ? '' : value
  }
  return changes
}

function shown (value, { dataset }) {
  if (typeof value === 'boolean') return texts[value ? 'yes' : 'no']
  if (typeof value === 'number') return numbers.format(value)
  // Of a choice of words, as in forms.
  return dataset.words !== undefined && /^[a-z]{3,}(?:[-_ ][a-z]+)*$/.test(value)
    ? `${value.slice(0, 1).toUpperCase()}${value.slice(1).replace(/[-_]/g, ' ')}`
    : value
}

/** Shows in a card what a record has of the fields that it has places for, but for those with these names. */
export function showFacts (card, record, others = []) {
  if (!card) return
  for (const place of card.querySelectorAll('[data-fact]')) {
    const value = record[place.dataset.fact]
    const isMissing = value === undefined || value === null || others.includes(place.dataset.fact)
    place.hidden = place.previousElementSibling.hidden = isMissing
    place.textContent = isMissing ? '' : shown(value, place)
  }
  card.hidden = card.querySelector('dd:not([hidden])') === null
}
