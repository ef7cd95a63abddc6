import { basename } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// The files that take longest; one of them begun last would be waited for alone.
const slow = ['kinds', 'fleet', 'layout', 'results', 'run', 'lost', 'access']

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = (f: TestSpecification) => {
      const i = slow.indexOf(basename(f.moduleId, '.test.ts'))
      return i < 0 ? slow.length : i
    }
    return (await super.sort(files)).sort((a, b) => place(a) - place(b))
  }
}

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
    sequence: { concurrent: false, sequencer: SlowFirst },
  },
})
