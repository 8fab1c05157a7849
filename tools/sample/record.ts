/** A record of the sample drop while it is gathered. */
import type { PageFact } from './pages.ts';

/** What is known about one domain, each fact with its source. */
export interface SampleRecord {
  /** As the first source spells it. */
  domain: string;
  language?: { value: string; source: string };
  readonly pages: Map<string, PageFact>;
  iab?: { value: string; source: string };
  readonly filtering: Map<string, Set<string>>;
  rank?: { value: number; source: string };
}
