import { defineConfig } from 'vitest/config'

// Pictures of every page to look at, no test: make screenshots.
export default defineConfig({
  test: {
    environment: 'node',
    include: ['tests/screenshots.ts'],
    maxWorkers: 1,
    testTimeout: 3_600_000,
    hookTimeout: 1_800_000,
    sequence: { concurrent: false },
  },
})
