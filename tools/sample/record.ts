/** A record of the sample drop while its facts are collected. */
import type { PageFact } from './pages.ts';

/** The facts about one domain, each with its source. */
export interface SampleRecord {
  /** As the first source spells it. */
  domain: string;
  language?: { value: string; source: string };
  readonly pages: Map<string, PageFact>;
  iab?: { value: string; source: string };
  readonly filtering: Map<string, Set<string>>;
  rank?: { value: number; source: string };
}
