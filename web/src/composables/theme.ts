import { useLocalStorage, usePreferredContrast, usePreferredDark } from '@vueuse/core'
import type { GlobalThemeOverrides } from 'naive-ui'
import { darkTheme } from 'naive-ui'
import { computed, watchEffect } from 'vue'

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

const effective = computed<'light' | 'dark' | 'sun'>(() => {
  if (choice.value !== 'system') return choice.value
  if (prefersContrast.value === 'more') return 'sun'
  return prefersDark.value ? 'dark' : 'light'
})

const accents = { light: '#0b5d82', dark: '#63c3ea', sun: '#003a57' }

const overrides = computed<GlobalThemeOverrides>(() => {
  const primary = accents[effective.value]
  const sun = effective.value === 'sun'
  return {
    common: {
      primaryColor: primary,
      primaryColorHover: primary,
      primaryColorPressed: primary,
      primaryColorSuppl: primary,
      fontFamily: 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif',
      fontFamilyMono: 'ui-monospace, "Noto Sans Mono", "DejaVu Sans Mono", monospace',
      borderRadius: '6px',
      // Naive UI's own greys are too faint for text on white (WCAG 2.1, 1.4.3).
      ...(effective.value === 'light' && {
        textColor1: '#111',
        textColor2: '#222',
        textColor3: '#5a5f66',
        placeholderColor: '#6a6f76',
        errorColor: '#b3261e',
        successColor: '#14692d',
        warningColor: '#8a5a00',
      }),
      ...(sun && {
        textColor1: '#000',
        textColor2: '#000',
        textColor3: '#1a1a1a',
        placeholderColor: '#333',
        borderColor: '#000',
        dividerColor: '#000',
        errorColor: '#8c0000',
        successColor: '#00501a',
        warningColor: '#5c3c00',
      }),
      ...(effective.value === 'dark' && {
        textColor3: 'rgba(255,255,255,.72)',
        placeholderColor: 'rgba(255,255,255,.6)',
      }),
    },
  }
})

watchEffect(() => {
  document.documentElement.dataset.theme = effective.value
})

export function useTheme() {
  return {
    choice,
    effective,
    isDark: computed(() => effective.value === 'dark'),
    naive: computed(() => (effective.value === 'dark' ? darkTheme : null)),
    overrides,
  }
}
