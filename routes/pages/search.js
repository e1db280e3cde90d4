// What a page of the documents does: a search over it, buttons that copy, and the mark of the part that is read.
const dialog = document.querySelector('#search')
const words = document.querySelector('#words')
const count = document.querySelector('#count')
const list = document.querySelector('#results ul')
const guide = new URL(`${document.body.dataset.guide}/`, location.href)
const SHOWN = 20
// How many characters of a text are shown around the first word that was found.
const AROUND = 70
let sections

for (const hidden of document.querySelectorAll('[data-search], [data-copy]')) hidden.hidden = false
document.addEventListener('click', ({ target }) => {
  const copying = target.closest('[data-copy]')
  if (copying) copy(copying)
  else if (target.closest('[data-search]')) open()
  // A click beside the dialog is one on the dialog itself.
  else if (target === dialog || target.closest('[data-close], #results a')) dialog.close()
})
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.closest('input, textarea')) return
  event.preventDefault()
  open()
})
dialog.querySelector('form').addEventListener('submit', (event) => {
  event.preventDefault()
  list.querySelector('a')?.click()
})
dialog.addEventListener('keydown', (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (!step) return
  event.preventDefault()
  const places = [words, ...list.querySelectorAll('a')]
  places[(places.indexOf(document.activeElement) + step + places.length) % places.length].focus()
})
words.addEventListener('input', search)
document.querySelector('#contents [aria-current]')?.scrollIntoView({ block: 'center' })
scrollTo(0, location.hash ? scrollY : 0)
followReading()

function open () {
  if (!dialog.open) dialog.showModal()
  words.select()
  load().catch(() => {})
}

/** Resolves with what the search looks into, which is loaded when it is first needed. */
function load () {
  sections ??= fetch(new URL('search.json', guide)).then(async (response) => {
    if (!response.ok) throw new Error(`${response.status}`)
    return (await response.json()).map((section) => ({ ...section, lower: section.text.toLowerCase() }))
  })
  sections.catch(() => { sections = undefined })
  return sections
}

async function search () {
  const given = words.value.toLowerCase().split(/[^\p{L}\d_]+/u).filter(Boolean)
  if (given.length === 0) {
    count.textContent = ''
    return list.replaceChildren()
  }
  try {
    show(rank(await load(), given), given)
  } catch {
    count.textContent = 'The search cannot be loaded. Try again.'
    list.replaceChildren()
  }
}

const startOf = (word, text) => {
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    if (at === 0 || /[^\p{L}\d_]/u.test(text[at - 1])) return at
  }
  return -1
}

/** Returns the sections that have all words, those first that have them in their titles. */
function rank (all, given) {
  const score = ({ title, heading, lower }) => {
    let sum = 0
    for (const word of given) {
      if (heading.toLowerCase().includes(word)) sum += 4
      else if (title.toLowerCase().includes(word)) sum += heading === '' ? 5 : 2
      else if (startOf(word, lower) !== -1) sum += 1
      else return 0
    }
    return sum
  }
  return all.map((section) => ({ section, points: score(section) })).filter(({ points }) => points > 0)
    .sort((one, other) => other.points - one.points).map(({ section }) => section)
}

function show (found, given) {
  count.textContent = countOf(found.length)
  list.replaceChildren(...found.slice(0, SHOWN).map((section) => {
    const { page, title, heading, id } = section
    const href = page === '' ? guide.href.replace(/\/$/, '') : new URL(page, guide).href
    const link = Object.assign(document.createElement('a'), { href: id === '' ? href : `${href}#${id}` })
    const where = element('span', 'where', heading === '' ? title : heading)
    if (heading !== '') where.append(' ', element('small', '', title))
    link.append(where, wordsIn(section, given))
    const item = document.createElement('li')
    item.append(link)
    return item
  }))
}

/** Returns the part of a section where the first of the words is, with all of them marked. */
function wordsIn ({ text, lower }, given) {
  const first = Math.min(...given.map((word) => startOf(word, lower)).filter((at) => at !== -1))
  const from = Number.isFinite(first) ? Math.max(0, lower.lastIndexOf(' ', Math.max(0, first - AROUND))) : 0
  const part = text.slice(from, from + 3 * AROUND)
  const place = element('span', 'words', from > 0 ? '… ' : '')
  let end = 0
  for (const { index, 0: word } of part.matchAll(/[\p{L}\d_]+/gu)) {
    if (!given.some((each) => word.toLowerCase().startsWith(each))) continue
    place.append(part.slice(end, index), element('mark', '', word))
    end = index + word.length
  }
  place.append(part.slice(end), from + part.length < text.length ? ' …' : '')
  return place
}

const element = (name, className, textContent) =>
  Object.assign(document.createElement(name), { className, textContent })

function countOf (number) {
  if (number === 0) return 'Nothing has all of these words.'
  if (number > SHOWN) return `The first ${SHOWN} of ${number} results`
  return number === 1 ? '1 result' : `${number} results`
}

async function copy (button) {
  await navigator.clipboard.writeText(button.closest('.code').querySelector('code').textContent)
  button.textContent = 'Copied'
  setTimeout(() => { button.textContent = 'Copy' }, 2000)
}

/** Marks the part of the document that is at the top of the window. */
function followReading () {
  const links = [...document.querySelectorAll('.toc a')]
  const headings = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))))
  const update = () => {
    const last = headings.filter((heading) => heading.getBoundingClientRect().top < innerHeight / 3).pop()
    for (const [index, link] of links.entries()) {
      if (headings[index] === last) link.setAttribute('aria-current', 'true')
      else link.removeAttribute('aria-current')
    }
  }
  addEventListener('scroll', update, { passive: true })
  update()
}
