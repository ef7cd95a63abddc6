// The theme that was chosen on Linktrial's pages, where they are at the same address, and the
// search over the headings of all documents (headings.js).
'use strict'
;(() => {
  try {
    const theme = localStorage.getItem('linktrial-theme')
    if (['light', 'dark', 'sun'].includes(theme)) document.documentElement.dataset.theme = theme
  } catch {
    // Browsers may keep storage from files: then the system's theme holds.
  }

  const shown = 30

  document.addEventListener('DOMContentLoaded', () => {
    // On a phone the contents would be several screens long before the document.
    if (matchMedia('(max-width: 900px)').matches) document.querySelector('nav details').open = false
    document.querySelector('nav [aria-current]').scrollIntoView({ block: 'nearest' })
    const words = document.getElementById('Words')
    const found = document.getElementById('Found')
    const count = document.getElementById('Count')
    const root = document.body.dataset.root
    const search = () => {
      const parts = words.value.toLowerCase().split(/\s+/).filter(Boolean)
      const hits = parts.length
        ? linktrialHeadings.filter(([, heading, title]) => {
            const text = (heading + ' ' + title).toLowerCase()
            return parts.every((part) => text.includes(part))
          })
        : []
      found.replaceChildren(
        ...hits.slice(0, shown).map(([href, heading, title]) => {
          const item = document.createElement('li')
          const link = document.createElement('a')
          link.href = root + href
          link.textContent = heading
          item.append(link)
          if (title !== heading) item.append(' ' + title)
          return item
        }),
      )
      if (!parts.length) count.textContent = ''
      else if (!hits.length) count.textContent = 'No heading has all of these words.'
      else if (hits.length > shown) count.textContent = `The first ${shown} of ${hits.length} headings:`
      else count.textContent = hits.length === 1 ? '1 heading:' : `${hits.length} headings:`
    }
    words.addEventListener('input', search)
    document.querySelector('nav search').hidden = false
    // A browser that comes back to the page has kept the words.
    search()
  })
})()
