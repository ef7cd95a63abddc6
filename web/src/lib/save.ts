// Files that the browser saves, and figures as they stand on the page.

export function saveFile(name: string, content: Blob): void {
  const url = URL.createObjectURL(content)
  saveFrom(url, name)
  // The download has its own hold on the content once it has started.
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

/** Has the browser save what is at an address; the server names it where no name is given. */
export function saveFrom(address: string, name = ''): void {
  const a = document.createElement('a')
  a.href = address
  a.download = name
  document.body.append(a)
  a.click()
  a.remove()
}

/** An SVG element as a file of its own: what style sheets gave it is written into it. */
export function svgText(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  const from = svg.querySelectorAll('*')
  copy.querySelectorAll('*').forEach((el, i) => {
    const s = getComputedStyle(from[i]!)
    for (const p of [
      'fill',
      'stroke',
      'stroke-width',
      'stroke-dasharray',
      'font-size',
      'font-weight',
      'font-family',
      'opacity',
      'paint-order',
    ]) {
      const v = s.getPropertyValue(p)
      if (v) (el as SVGElement).style.setProperty(p, v)
    }
    el.removeAttribute('class')
    el.removeAttribute('tabindex')
    el.removeAttribute('role')
  })
  return new XMLSerializer().serializeToString(copy)
}
