// Searches the documents. What it looks into is loaded when it is first needed.
const words = document.querySelector('#words')
const results = document.querySelector('#results')
const count = document.querySelector('#count')
const list = results.querySelector('ul')
const guide = new URL(`${document.body.dataset.guide}/`, location.href)
const SHOWN = 20
let sections

document.querySelector('#search').hidden = false
document.querySelector('#search').addEventListener('submit', (event) => event.preventDefault())
words.addEventListener('input', search)

async function search () {
  const given = words.value.toLowerCase().split(/[^\p{L}\d_]+/u).filter(Boolean)
  results.hidden = given.length === 0
  if (results.hidden) return
  try {
    sections ??= fetch(new URL('search.json', guide)).then((response) => response.ok ? response.json() : Promise.reject(response))
    show(rank(await sections, given))
  } catch {
    sections = undefined
    count.textContent = 'The search cannot be loaded. Try again.'
    list.replaceChildren()
  }
}

/** Returns the sections that have all words, those first that have them in their titles. */
function rank (all, given) {
  const score = ({ title, heading, words }) => {
    let sum = 0
    for (const word of given) {
      if (heading.toLowerCase().includes(word)) sum += 4
      else if (title.toLowerCase().includes(word)) sum += heading === '' ? 5 : 2
      else if (` ${words}`.includes(` ${word}`)) sum += 1
      else return 0
    }
    return sum
  }
  return all.map((section) => ({ section, points: score(section) })).filter(({ points }) => points > 0)
    .sort((one, other) => other.points - one.points).map(({ section }) => section)
}

function show (found) {
  count.textContent = countOf(found.length)
  list.replaceChildren()
  for (const { page, title, heading, id } of found.slice(0, SHOWN)) {
    const href = page === '' ? guide.href.replace(/\/$/, '') : new URL(page, guide).href
    const link = Object.assign(document.createElement('a'), {
      href: id === '' ? href : `${href}#${id}`, textContent: heading === '' ? title : `${title}: ${heading}`,
    })
    const item = document.createElement('li')
    item.append(link)
    list.append(item)
  }
}

function countOf (number) {
  if (number === 0) return 'Nothing has all of these words.'
  if (number > SHOWN) return `The first ${SHOWN} of ${number} results`
  return number === 1 ? '1 result' : `${number} results`
}
