import { QueryClient, VueQueryPlugin } from '@tanstack/vue-query'
import { createApp } from 'vue'
import App from './App.vue'
import './style.css'
import '@/components/ui/forms.css'
import './print.css'
import { onBack } from '@/composables/contact'
import { isCancelled } from '@/lib/api'
import { guard } from '@/features/access/session'
import { router } from './router'

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // The orchestrator is near, and its answer is the only truth: one more try, then say what is wrong.
      retry: (failures, error) => failures < 1 && !isCancelled(error),
      retryDelay: 500,
      staleTime: 2_000,
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
})

// Whatever failed or waits meanwhile is asked for again.
onBack(() => void queries.invalidateQueries())

guard(router)
createApp(App).use(router).use(VueQueryPlugin, { queryClient: queries }).mount('#app')
