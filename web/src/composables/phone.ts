// Whether the window is as narrow as a phone's or a tablet's: what is not looked for first folds away there.
import { useMediaQuery } from '@vueuse/core'

/** The same width as in the style sheets. */
export const usePhone = () => useMediaQuery('(max-width: 700px)')

/** Where the cards of three nodes no longer share a row. */
export const useTablet = () => useMediaQuery('(max-width: 1100px)')
