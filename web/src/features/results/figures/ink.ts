// The colours a figure is drawn in besides those of its treatments: the screen's
// theme, or black on white for what is downloaded.
import { computed, type ComputedRef } from 'vue'
import { useTheme } from '@/composables/theme'
import { looks, toned, type Look } from '@/lib/palette'

export interface Ink {
  text: string
  muted: string
  line: string
  faint: string
  surface: string
  bad: string
  font: string
  /** A treatment's colour on this ground. */
  tone(color: string): string
}

// Names without quotation marks: these would end an attribute of an SVG file.
const font = 'system-ui, -apple-system, Segoe UI, Noto Sans, DejaVu Sans, sans-serif'

/** Reports are printed: white, whatever the screen shows. */
export const paper: Ink = {
  text: '#111418',
  muted: '#4a525a',
  line: '#8a939c',
  faint: '#dfe3e7',
  surface: '#ffffff',
  bad: '#b3261e',
  font,
  tone: (c) => c,
}

export function useInk(): ComputedRef<Ink> {
  const { effective } = useTheme()
  return computed(() => {
    const theme = effective.value
    if (typeof document === 'undefined') return paper
    document.documentElement.dataset.theme = theme
    const style = getComputedStyle(document.documentElement)
    const v = (name: string, otherwise: string) => style.getPropertyValue(name).trim() || otherwise
    return {
      text: v('--text', paper.text),
      muted: v('--muted', paper.muted),
      line: v('--muted', paper.line),
      faint: theme === 'sun' ? '#b0b0b0' : v('--line', paper.faint),
      surface: v('--surface', paper.surface),
      bad: v('--bad', paper.bad),
      font,
      tone: (c) => toned(c, theme),
    }
  })
}

const unknown: Look = { color: '#5a5f66', marker: 'emptyCircle', size: 1, glyph: '○', dash: 'solid' }

/** Beside Ideal's, which is the unknown one. */
const codedBound: Look = { ...unknown, marker: 'emptyDiamond', glyph: '◇' }

/** Looks by the name of the treatment; a name that no plan has is grey. */
export function lookOf(all: ReturnType<typeof looks>, name: string): Look {
  return all.get(name) ?? (name === 'coded-bound' ? codedBound : unknown)
}
