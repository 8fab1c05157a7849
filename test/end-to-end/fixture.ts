/** The drop of the contract test. Its facts are fictional, even for well-known names. */

/** Lines of the drop, as a supplier might send them: unordered page types, Unicode names, missing facts. */
export const DROP_ENTRIES: readonly object[] = [
  {
    domain: 'stripe.com',
    language: 'en',
    page_types: {
      docs: 'https://docs.stripe.com/',
      pricing: 'https://stripe.com/pricing',
      login: 'https://stripe.com/login',
    },
    iab_category: 'Business and Finance > Business > Business Banking & Finance',
    filtering_categories: ['Banking & Finance', 'Business'],
    open_page_rank: 7.52,
    global_rank: 331,
  },
  {
    domain: 'github.com',
    language: 'en',
    page_types: { about: 'https://github.com/about' },
    filtering_categories: ['Developer Tools'],
    open_page_rank: 10,
    global_rank: 1,
  },
  {
    domain: 'fixture-phish.com',
    language: 'en',
    page_types: {},
    filtering_categories: ['Phishing'],
    open_page_rank: 0,
  },
  { domain: 'münchen.de', language: 'de', page_types: { contact: 'http://münchen.de/kontakt' }, open_page_rank: 5.1 },
  { domain: 'fixture-bare.com', page_types: {} },
  { domain: 'under_score.fixture-one.com', language: 'fr', page_types: {}, open_page_rank: 0.05 },
  {
    domain: 'fixture-dash.com',
    language: 'en',
    page_types: {
      login: 'https://dashboard.fixture-dash.com/login',
      upload: 'http://fixture-dash.com/?to=files',
      checkout: 'https://fixture-dash.com/buy',
    },
    global_rank: 4_294_967_295,
  },
  { domain: 'www.com', language: 'en', page_types: {} },
  {
    domain: 'fixture-all.com',
    language: 'en',
    page_types: Object.fromEntries(
      [
        ...['download', 'forum', 'terms', 'privacy', 'api_reference', 'settings', 'admin', 'wiki_edit', 'status'],
        ...['help', 'product', 'legal', 'blog', 'careers', 'about', 'contact', 'docs', 'pricing', 'subscribe'],
        ...['comment', 'post', 'upload', 'cart', 'checkout', 'account', 'password_reset', 'signup', 'login'],
      ].map((type) => [type, `https://fixture-all.com/at/${type}`]),
    ),
  },
];

/** The expected body for each record, without verdict and quota: the text before `quota_remaining` and the text after `matched`. */
export const ANSWERS: Readonly<Record<string, readonly [string, string]>> = {
  'stripe.com': [
    '"domain":"stripe.com","found":true,"language":"en","page_types":{"login":"https://stripe.com/login","pricing":"https://stripe.com/pricing","docs":"https://docs.stripe.com/"}',
    ',"iab_category":"Business and Finance > Business > Business Banking & Finance","filtering_categories":["Banking & Finance","Business"],"open_page_rank":7.52,"global_rank":331',
  ],
  'github.com': [
    '"domain":"github.com","found":true,"language":"en","page_types":{"about":"https://github.com/about"}',
    ',"filtering_categories":["Developer Tools"],"open_page_rank":10,"global_rank":1',
  ],
  'fixture-phish.com': [
    '"domain":"fixture-phish.com","found":true,"language":"en","page_types":{}',
    ',"filtering_categories":["Phishing"],"open_page_rank":0',
  ],
  'xn--mnchen-3ya.de': [
    '"domain":"xn--mnchen-3ya.de","found":true,"language":"de","page_types":{"contact":"http://xn--mnchen-3ya.de/kontakt"}',
    ',"open_page_rank":5.1',
  ],
  'fixture-bare.com': ['"domain":"fixture-bare.com","found":true,"page_types":{}', ''],
  'under_score.fixture-one.com': [
    '"domain":"under_score.fixture-one.com","found":true,"language":"fr","page_types":{}',
    ',"open_page_rank":0.05',
  ],
  'fixture-dash.com': [
    '"domain":"fixture-dash.com","found":true,"language":"en","page_types":{"login":"https://dashboard.fixture-dash.com/login","checkout":"https://fixture-dash.com/buy","upload":"http://fixture-dash.com/?to=files"}',
    ',"global_rank":4294967295',
  ],
  'www.com': ['"domain":"www.com","found":true,"language":"en","page_types":{}', ''],
  'fixture-all.com': [
    '"domain":"fixture-all.com","found":true,"language":"en","page_types":{"login":"https://fixture-all.com/at/login","signup":"https://fixture-all.com/at/signup","password_reset":"https://fixture-all.com/at/password_reset","account":"https://fixture-all.com/at/account","checkout":"https://fixture-all.com/at/checkout","cart":"https://fixture-all.com/at/cart","upload":"https://fixture-all.com/at/upload","post":"https://fixture-all.com/at/post","comment":"https://fixture-all.com/at/comment","subscribe":"https://fixture-all.com/at/subscribe","pricing":"https://fixture-all.com/at/pricing","docs":"https://fixture-all.com/at/docs","contact":"https://fixture-all.com/at/contact","about":"https://fixture-all.com/at/about","careers":"https://fixture-all.com/at/careers","blog":"https://fixture-all.com/at/blog","legal":"https://fixture-all.com/at/legal","product":"https://fixture-all.com/at/product","help":"https://fixture-all.com/at/help","status":"https://fixture-all.com/at/status","wiki_edit":"https://fixture-all.com/at/wiki_edit","admin":"https://fixture-all.com/at/admin","settings":"https://fixture-all.com/at/settings","api_reference":"https://fixture-all.com/at/api_reference","privacy":"https://fixture-all.com/at/privacy","terms":"https://fixture-all.com/at/terms","forum":"https://fixture-all.com/at/forum","download":"https://fixture-all.com/at/download"}',
    '',
  ],
};
