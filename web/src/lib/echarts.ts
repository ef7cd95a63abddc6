// The parts of ECharts that the figures use, in one chunk that is loaded when
// the first figure is drawn: `await import('./echarts')`. Canvas draws what
// is on the screen, SVG what is downloaded.
import { CustomChart, LineChart, ScatterChart } from 'echarts/charts'
import {
  AxisPointerComponent,
  DataZoomInsideComponent,
  DataZoomSliderComponent,
  GridComponent,
  TitleComponent,
  TooltipComponent,
} from 'echarts/components'
import { use } from 'echarts/core'
import { CanvasRenderer, SVGRenderer } from 'echarts/renderers'

use([
  CustomChart,
  LineChart,
  ScatterChart,
  AxisPointerComponent,
  DataZoomInsideComponent,
  DataZoomSliderComponent,
  GridComponent,
  TitleComponent,
  TooltipComponent,
  CanvasRenderer,
  SVGRenderer,
])

export { init } from 'echarts/core'
export type { EChartsType } from 'echarts/core'
