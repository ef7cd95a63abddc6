import { defineConfig } from 'vitest/config'

// Real-browser tests: the built program, a lab on emulated radios, Debian's
// Chromium. One file at a time: each has an orchestrator and a lab of its own.
export default defineConfig({
  test: {
    environment: 'node',
    include: ['tests/**/*.test.ts'],
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 120_000,
    sequence: { concurrent: false },
  },
})
