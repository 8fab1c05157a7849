/** The form of a server's metrics for other modules, which may not import `admin/`. */
export { LATENCY_BOUNDS_SECONDS, type MetricsSnapshot } from './admin/metrics.ts';
