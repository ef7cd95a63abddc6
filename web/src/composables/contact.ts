// Whether the orchestrator answers, for all pages at once.
import { useEventListener } from '@vueuse/core'
import { shallowRef, watch } from 'vue'
import { onCalls } from '@/lib/api'
import { Contact, type Outage } from '@/lib/contact'

/** Since when the orchestrator does not answer; undefined while it does. */
export const outage = shallowRef<Outage>()

const contact = new Contact({
  probe: (signal) => fetch('/healthz', { signal, cache: 'no-store' }),
  changed: (o) => (outage.value = o),
  hidden: () => document.visibilityState === 'hidden',
})
onCalls({ began: () => contact.began(), heard: () => contact.heard(), failed: () => void contact.ask() })
useEventListener(document, 'visibilitychange', () => document.visibilityState === 'visible' && void contact.ask())
useEventListener(window, 'online', () => void contact.ask())

/** Asks the orchestrator at once. */
export const askNow = (): Promise<void> => contact.ask()

/** Calls then whenever the orchestrator is back. */
export function onBack(then: () => void): () => void {
  return watch(outage, (now, before) => before && !now && then())
}
