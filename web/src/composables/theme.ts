// Which of the three themes the pages have; their colours are in style.css.
import { useEventListener, useLocalStorage, useMediaQuery, usePreferredContrast, usePreferredDark } from '@vueuse/core'
import { computed, ref, watchEffect } from 'vue'

export type ThemeChoice = 'system' | 'light' | 'dark' | 'sun'

/** "sun" is black on white at the highest contrast, for a screen outdoors. */
export const themeChoices: { value: ThemeChoice; label: string }[] = [
  { value: 'system', label: 'As the system' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
  { value: 'sun', label: 'High contrast (sunlight)' },
]

const choice = useLocalStorage<ThemeChoice>('linktrial-theme', 'system')
const prefersDark = usePreferredDark()
const prefersContrast = usePreferredContrast()

// Paper is white: figures are drawn in the light theme's colours before they are printed.
const onPaper = useMediaQuery('print')
const printing = ref(false)
if (typeof window !== 'undefined') {
  useEventListener(window, 'beforeprint', () => (printing.value = true))
  useEventListener(window, 'afterprint', () => (printing.value = false))
}

const effective = computed<'light' | 'dark' | 'sun'>(() => {
  if (printing.value || onPaper.value) return 'light'
  if (choice.value !== 'system') return choice.value
  if (prefersContrast.value === 'more') return 'sun'
  return prefersDark.value ? 'dark' : 'light'
})

watchEffect(
  () => {
    document.documentElement.dataset.theme = effective.value
  },
  { flush: 'sync' },
)

export function useTheme() {
  return { choice, effective }
}
