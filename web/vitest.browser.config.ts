import { defineConfig } from 'vitest/config'

// Real-browser tests: the built program, a lab on emulated radios, Debian's
// Chromium. Three files at a time: each has an orchestrator and a lab of its own, and
// mostly waits.
export default defineConfig({
  test: {
    environment: 'node',
    include: ['tests/**/*.test.ts'],
    maxWorkers: 3,
    // Only to notice what hangs: a busy machine may take its time.
    testTimeout: 600_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000, interval: 100 } },
    sequence: { concurrent: false },
  },
})
