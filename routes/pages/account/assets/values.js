// What fields of forms have, as the API takes it. A field of the host says which type its values have.
const NUMBERS = ['integer', 'number']

/** Returns the value of a field; null if it has none. */
export function valueOf (field) {
  if (field.type === 'checkbox') return field.checked
  if (field.value === '') return null
  // What is no number is rejected by the API, with its sentence.
  if (NUMBERS.includes(field.dataset.host) && Number.isFinite(Number(field.value))) return Number(field.value)
  return field.value
}

/** Returns the values of a form, with those of the fields of the host as the API takes them. */
export function valuesOf (form, values) {
  const read = { ...values }
  for (const field of form.querySelectorAll('[data-host]')) {
    const value = valueOf(field)
    // A box that nobody has touched says nothing.
    if (value === null || (field.type === 'checkbox' && field.checked === field.defaultChecked && !field.checked)) delete read[field.name]
    else read[field.name] = value
  }
  return read
}
