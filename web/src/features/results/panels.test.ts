import { expect, it } from 'vitest'
import { mergePanels, valueAt } from './panels'

it('lays finer data into the overview and keeps it around', () => {
  const line = (points: [number, number][]) => [
    { key: 'x', title: 'x', unit: '', lines: [{ name: 'l', step: false, points }] },
  ]
  const merged = mergePanels(
    line([
      [0, 0],
      [1, 1],
      [2, 2],
      [3, 3],
    ]),
    line([
      [0.9, 9],
      [1, 9],
      [1.5, 9],
      [2, 9],
      [2.1, 9],
    ]),
    1,
    2,
  )
  expect(merged[0]!.lines[0]!.points).toEqual([
    [0, 0],
    [1, 9],
    [1.5, 9],
    [2, 9],
    [3, 3],
  ])
  expect(
    mergePanels(
      line([
        [0, 0],
        [1, 1],
      ]),
      line([]),
      0,
      1,
    )[0]!.lines[0]!.points,
  ).toHaveLength(2)
})

it.each([
  [true, 1.4, 10],
  [true, 0.5, Number.NaN],
  [true, 9, 30],
  [false, 1.4, 10],
  [false, 1.6, 20],
  [false, 0, 10],
  [false, 9, 30],
])('reads a line (steps: %s) at %d as %d', (step, at, value) =>
  expect(
    valueAt(
      {
        name: '',
        step,
        points: [
          [1, 10],
          [2, 20],
          [3, 30],
        ],
      },
      at,
    ),
  ).toBe(value),
)
