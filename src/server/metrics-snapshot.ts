/** What those who watch a server see of its metrics. */
export { LATENCY_BOUNDS_SECONDS, type MetricsSnapshot } from './admin/metrics.ts';
