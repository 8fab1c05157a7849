/** The names of all problems that a line of a drop can have. docs/drop-format.md explains each; a test compares the two. */
import type { HostProblem } from '../domain/host-key.ts';

/** Reasons to reject a whole line, so that the domain will not be found. If several apply, the first in this list is reported. */
export const LINE_REASONS = [
  'line_too_long',
  'invalid_utf8',
  'invalid_json',
  'not_an_object',
  'duplicate_key',
  'domain_missing',
  'domain_wrong_type',
  'domain_mojibake',
  'domain_scheme',
  'domain_has_userinfo',
  'domain_has_path',
  'domain_percent_encoded',
  'domain_empty',
  'domain_control_character',
  'domain_forbidden_character',
  'domain_idn_invalid',
  'domain_unparsable',
  'domain_ip_address',
  'domain_empty_label',
  'domain_label_too_long',
  'domain_too_long',
  'domain_single_label',
  'domain_edge_hyphen',
] as const satisfies readonly (`domain_${HostProblem}` | string)[];

/** Reasons to reject a page. Its entry is kept without it. */
export const PAGE_REASONS = [
  'page_type_unknown',
  'page_type_duplicate',
  'page_url_wrong_type',
  'page_url_too_long',
  'page_url_control_character',
  'page_url_invalid',
  'page_url_scheme',
  'page_url_userinfo',
  'page_off_domain',
] as const;

/** Reasons to reject a fact. Its entry is kept without it. */
export const FACT_REASONS = [
  'language_wrong_type',
  'language_unknown',
  'page_types_wrong_type',
  'page_types_too_many',
  'iab_category_wrong_type',
  'iab_category_unknown',
  'filtering_categories_wrong_type',
  'filtering_categories_too_many',
  'filtering_category_wrong_type',
  'filtering_category_unknown',
  'open_page_rank_wrong_type',
  'open_page_rank_out_of_range',
  'global_rank_wrong_type',
  'global_rank_out_of_range',
] as const;

/** Repairs, which are only counted. The first three are repairs of lines, the others of entries. */
export const REPAIRS = [
  'bom_stripped',
  'crlf',
  'blank_line',
  'null_field',
  'unknown_field',
  'domain_trimmed',
  'domain_url_reduced',
  'domain_port_stripped',
  'domain_case_folded',
  'domain_idn_encoded',
  'domain_www_stripped',
  'domain_trailing_dot_stripped',
  'language_folded',
  'page_type_alias',
  'page_type_outside_scope',
  'page_url_canonicalized',
  'filtering_category_duplicate',
  'open_page_rank_rounded',
] as const;

export type LineReason = (typeof LINE_REASONS)[number];
export type PageReason = (typeof PAGE_REASONS)[number];
export type FactReason = (typeof FACT_REASONS)[number];
export type RejectReason = LineReason | PageReason | FactReason;
export type Repair = (typeof REPAIRS)[number];

/** What a reject drops. */
export type RejectLevel = 'line' | 'page' | 'fact';

/** A reject in a line. */
export interface Reject {
  readonly level: RejectLevel;
  readonly reason: RejectReason;
  /** The rejected text, shortened. Control characters are not escaped yet: whoever prints it must do so. */
  readonly detail: string;
}

/** Maximum length of `detail`, in UTF-16 code units. */
export const DETAIL_MAX_CHARACTERS = 160;

/** Collects the problems of one line. The reject methods return undefined, so that a caller can return their result. */
export class Diagnostics {
  readonly rejects: Reject[] = [];
  readonly repairs: Repair[] = [];

  rejectLine(reason: RejectReason, detail: string): undefined {
    return this.#add('line', reason, detail);
  }

  rejectPage(reason: RejectReason, detail: string): undefined {
    return this.#add('page', reason, detail);
  }

  rejectFact(reason: RejectReason, detail: string): undefined {
    return this.#add('fact', reason, detail);
  }

  repair(repair: Repair): void {
    this.repairs.push(repair);
  }

  #add(level: RejectLevel, reason: RejectReason, detail: string): undefined {
    this.rejects.push({ level, reason, detail: detail.slice(0, DETAIL_MAX_CHARACTERS).toWellFormed() });
  }
}
