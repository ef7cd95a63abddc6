import { fileURLToPath } from 'node:url'
import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  plugins: [vue()],
  resolve: { alias: { '@': fileURLToPath(new URL('./src', import.meta.url)) } },
  build: {
    target: 'es2022',
    chunkSizeWarningLimit: 700,
    reportCompressedSize: true,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            // What several pages use, in one file: as files of their own these parts make a
            // page wait for more requests than it has to. Charts and the editor stay apart.
            {
              name: 'shared',
              test: /\/src\/(components|composables|gen|lib\/(?!echarts)|features\/(access|fleet|run)\/(?!LiveChart))|node_modules\/(@tanstack|@bufbuild|@connectrpc|vue-router)\//,
              minShareCount: 4,
            },
            // What pages share that start a plan: the plan's own page has many parts already.
            {
              name: 'start',
              test: /\/src\/features\/plan\/(StartDialog|planPreflight|NameDialog|usePlans)\./,
              minShareCount: 2,
            },
            // And what reads and changes a plan's text.
            {
              name: 'plan',
              test: /\/src\/features\/plan\/(form|text|usePlanDrivers)\.|\/MultiSelect\./,
              minShareCount: 2,
            },
          ],
        },
      },
    },
  },
  // npm run dev: the API and the handbook of an orchestrator on its usual port.
  server: { proxy: { '^/(linktrial\\.v1\\.|download|handbook)': 'http://127.0.0.1:7700' } },
  test: {
    environment: 'happy-dom',
    include: ['src/**/*.test.ts'],
    restoreMocks: true,
    setupFiles: ['src/test-no-network.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
