// Whether the window is as narrow as a phone's: what is not looked for first folds away there.
import { useMediaQuery } from '@vueuse/core'

/** The same width as in the style sheets. */
export const usePhone = () => useMediaQuery('(max-width: 700px)')
