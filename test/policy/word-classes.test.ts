/** Classes of words and places: each kind of act is denied in every form that its parts can make, and what only looks like an act is not. */
import { describe, expect, it } from 'vitest';
import { phrasesOf } from '../../src/policy/documents.ts';
import { judge, licenseePolicy, shipped } from './support.ts';

/** Lists whose compounds are acts wherever they end a path, each with the rule that denies them. */
const COMPOUNDS: Readonly<Record<string, string>> = {
  login: 'login',
  password_reset: 'password_reset',
  oauth: 'oauth',
  post: 'post',
  comment: 'comment',
  admin: 'admin',
  account: 'account',
  subscribe: 'subscribe',
};

describe('a word and what stands beside it', () => {
  it.each(Object.entries(COMPOUNDS))('%s: every pair of the two halves is denied, in every spelling', (list, rule) => {
    const compounds = shipped.document.tokens[list]?.compounds ?? [];
    const pairs = compounds.flatMap(({ first, then }) => first.flatMap((start) => then.map((end) => [start, end])));
    expect(pairs.length).toBeGreaterThan(50);
    const allowed = pairs
      .flatMap(([start, end]) => [`${start}-${end}`, `${start}_${end}.html`, `${start}${end}`.replaceAll(' ', '')])
      .map((name) => `https://shop.example.org/x1/${encodeURIComponent(name.replaceAll(' ', '-'))}`)
      .filter((url) => !judge(url).startsWith('deny'));
    expect(allowed).toEqual([]);
    expect(judge(`https://shop.example.org/x1/${pairs[0]!.join('-')}`)).toBe(`deny rules/${rule}`);
  });

  const PASSWORDS: Readonly<Record<string, readonly string[]>> = {
    de: ['zugangsdaten-anfordern', 'kennwort-neu-setzen'],
    fr: ['modification-du-mot-de-passe', 'recuperer-mes-identifiants'],
    es: ['has-olvidado-tu-contrasena', 'modificacion-de-clave'],
    pt: ['redefinicao-de-senha', 'esqueceu-a-sua-senha'],
    it: ['ho-dimenticato-la-password', 'credenziali-smarrite'],
    nl: ['wachtwoord-opnieuw-instellen'],
    pl: ['ustaw-nowe-haslo', 'resetowanie-hasla'],
    cs: ['zapomneli-jste-heslo'],
    hu: ['jelszo-helyreallitas'],
    ro: ['resetarea-parolei'],
    sv: ['skapa-nytt-losenord'],
    da: ['gendan-kodeord'],
    no: ['tilbakestill-passord'],
    fi: ['salasanan-vaihtaminen'],
    tr: ['sifremi-sıfırla', 'parola-yenileme'],
    el: ['allagi-kwdikou'],
    ru: ['смена-пароля', 'sbros-parolya'],
    uk: ['зміна-пароля'],
    hr: ['promjena-lozinke'],
    lt: ['pamirsau-slaptazodi'],
    he: ['שחזור-סיסמה'],
    ar: ['إعادة-تعيين-كلمة-المرور'],
    fa: ['بازیابی-رمز-عبور'],
    th: ['ตั้งรหัสผ่าน'],
    vi: ['khoi-phuc-mat-khau'],
    id: ['atur-ulang-kata-sandi'],
    ja: ['パスワードの再設定'],
    zh: ['重设密码', 'zhaohuimima'],
    ko: ['비밀번호초기화'],
  };

  it.each(Object.entries(PASSWORDS))('a password is changed or recovered in %s', (_language, names) => {
    for (const name of names) {
      expect([name, judge(`https://www.example.org/${encodeURIComponent(name)}`)]).toEqual([
        name,
        'deny rules/password_reset',
      ]);
    }
  });
});

describe('a login in the words of a language', () => {
  const LOGINS: Readonly<Record<string, readonly string[]>> = {
    fr: ['je-me-connecte'],
    es: ['acceso-a-tu-cuenta', 'clientes-iniciar-sesion'],
    pt: ['acesso-do-aluno', 'area-do-cliente-login'],
    it: ['accedi-al-portale', 'area-riservata-login'],
    nl: ['inloggen-met-digid', 'klanten-inloggen'],
    pl: ['zaloguj-sie-do-panelu-klienta', 'logowanie-do-systemu'],
    cs: ['prihlaseni-do-portalu'],
    hu: ['bejelentkezes-felhasznaloknak', 'netbank-belepes'],
    ro: ['conectare-clienti'],
    sv: ['logga-in-med-bankid'],
    da: ['log-ind-paa-selvbetjening', 'kunde-log-ind'],
    no: ['logg-inn-mine-sider'],
    fi: ['kirjaudu-omille-sivuille'],
    tr: ['internet-sube-giris', 'bayi-girisi'],
    el: ['είσοδος-πελατών'],
    ru: ['vhod-v-lichnyy-kabinet', 'вход-для-партнеров'],
    uk: ['вхід-до-кабінету'],
    hr: ['prijava-korisnika'],
    sl: ['prijava-uporabnika'],
    et: ['sisselogimise-leht'],
    lv: ['lietotaja-ieeja'],
    lt: ['prisijunkite', 'prisijungimo-puslapis'],
    ca: ['inici-de-sessio'],
    eu: ['hasi-saioa'],
    vi: ['dang-nhap-he-thong'],
    id: ['masuk-ke-akun', 'login-mahasiswa'],
    ja: ['会員様ログイン'],
    zh: ['统一身份登录'],
    ko: ['통합로그인'],
    ar: ['تسجيل-الدخول-للحساب'],
    fa: ['ورود-به-سامانه'],
    he: ['כניסה-למערכת'],
  };

  it.each(Object.entries(LOGINS))('%s', (_language, names) => {
    for (const name of names) {
      expect([name, judge(`https://www.example.org/${encodeURIComponent(name)}`)]).toEqual([name, 'deny rules/login']);
    }
  });
});

describe('an account that is made, and one that is recovered, in the words of a language', () => {
  const NAMES: Readonly<Record<string, Readonly<Record<'signup' | 'password_reset', string>>>> = {
    da: { signup: 'bruger/opret', password_reset: 'skift-password' },
    no: { signup: 'bruker/opprett', password_reset: 'tilbakestill-passord' },
    fi: { signup: 'luo-uusi-tili', password_reset: 'salasanan-palautus' },
    hu: { signup: 'felhasznalo/letrehozas', password_reset: 'jelszo_elkuldes' },
    ro: { signup: 'creare-cont-nou', password_reset: 'recupereaza-parola' },
    el: { signup: 'eggrafi-melous', password_reset: 'anaktisi-kodikou' },
    bg: { signup: 'нов-потребител', password_reset: 'възстановяване-на-парола' },
    sr: { signup: 'napravi-nalog', password_reset: 'promeni-lozinku' },
    sl: { signup: 'ustvari-racun', password_reset: 'ponastavitev-gesla' },
    et: { signup: 'loo-kasutaja', password_reset: 'parooli-taastamine' },
    lv: { signup: 'izveidot-profilu', password_reset: 'paroles-atjaunosana' },
    lt: { signup: 'susikurti-paskyra', password_reset: 'slaptazodzio-atkurimas' },
    gl: { signup: 'rexistro', password_reset: 'cambiar-contrasinal' },
    fr: { signup: 'nouveau-membre.php', password_reset: 'mot-de-passe-oublie' },
    en: { signup: 'RegisterNewUser.aspx', password_reset: 'forgotten_password_form' },
  };

  it.each(Object.entries(NAMES))('%s', (_language, names) => {
    for (const [rule, name] of Object.entries(names)) {
      const path = name.split('/').map(encodeURIComponent).join('/');
      expect([name, judge(`https://www.example.org/${path}`)]).toEqual([name, `deny rules/${rule}`]);
    }
  });
});

describe('an act by its place', () => {
  it.each([
    // A word for a login, or for a new password, at the end of a name that is written as one word.
    ['https://www.example.org/auth/shibbolethLogin', 'login'],
    ['https://www.example.org/x/selfsignin', 'login'],
    ['https://www.example.org/wizard/HelpChangePassword', 'password_reset'],
    ['https://www.example.org/pkmslogin.form', 'login'],
    ['https://www.example.org/bc/member/SfrPasswordReminder.jsp', 'password_reset'],
    // A single letter is not a word of a name.
    ['https://www.example.de/m-passwort-vergessen.html', 'password_reset'],
    // Two `@` open a view of a page.
    ['https://www.example.org/pt-br/@@login', 'login'],
    // A route of a front page without a leading slash, whatever parameters it has.
    ['https://www.example.org/#welcome/login', 'login'],
    ['https://www.example.org/#user/account?x=1', 'account'],
    // What anyone can append to a route opens the same one.
    ['https://www.example.org/#user/login%26x=', 'login'],
    ['https://www.example.org/#user/login=', 'login'],
    ['https://www.example.org/#login&x=1', 'login'],
    ['https://www.example.org/#sec&urelogin', 'login'],
    ['https://www.example.org/#sec&urelogin=', 'login'],
    ['https://www.example.org/x1?login%26x=', 'login'],
    ['https://www.example.org/#login?next=a', 'login'],
    // Links in mails, forms of help desks, and programs that create something.
    ['https://www.example.org/unsubscribe/12/9f8e7d6c5b', 'subscribe'],
    ['https://go.example.org/unsubscribe/u/1/9f8e7d6c5b/4', 'subscribe'],
    ['https://www.example.org/node/add/article', 'post'],
    ['https://www.example.org/clubs/add', 'post'],
    ['https://www.example.org/index.php?rp=/login', 'login'],
    ['https://www.example.org/oferty/dodaj', 'post'],
    ['https://www.example.org/anuncios/nuevo', 'post'],
    ['https://www.example.org/profil/edytuj', 'wiki_edit'],
    ['https://www.example.org/wiki/Spezial:Hochladen', 'account'],
    ['https://www.example.org/bug_report_page.php', 'post'],
    ['https://support.example.org/open.php', 'post'],
    ['https://help.example.org/hc/en-us/signin', 'login'],
    ['https://example.atlassian.net/servicedesk/customer/user/login', 'login'],
    ['https://www.example.org/webinar/register/WN_9wQ1x2Y3', 'signup'],
    ['https://www.example.org/preference-center', 'subscribe'],
    ['https://vault.example.org/', 'login'],
    ['https://www.example.org/index.php?act=dispMemberLoginForm', 'login'],
    ['https://www.example.org/?p=unsubscribe', 'action_get'],
    ['https://www.example.org/email/verify/a1b2c3d4e5', 'action_get'],
    // New sessions, and front pages that ask who the visitor is.
    ['https://www.example.org/user_sessions/new', 'login'],
    ['https://customers.example.org/', 'login'],
    ['https://student-portal.example.edu/', 'login'],
    ['https://espace-client.example.fr/x', 'account'],
    // Programs on hosts that are named like documentation.
    ['https://learn.example.edu/webapps/login/', 'login'],
    ['https://learn.example.edu/webapps/x/execute/changePassword', 'password_reset'],
    // Steps of a booking, below a word that comes before titles elsewhere.
    ['https://www.example.org/book/passenger', 'booking'],
    // What an author does, and verbs of other languages.
    ['https://www.example.org/cafes/123/articles/write', 'post'],
    ['https://www.example.es/peticiones/1/firmar', 'post'],
    ['https://www.example.ru/podat-obyavlenie', 'post'],
    // Payments.
    ['https://www.example.org/pay-your-invoice', 'checkout'],
    ['https://www.example.org/guest-payment', 'checkout'],
    ['https://www.example.mx/pago-de-facturas', 'checkout'],
    // Names of programs, with or without the extension of a page.
    ['https://www.example.org/displayLoginForm.htm', 'login'],
    ['https://www.example.org/x/showLogonPage.html', 'login'],
    ['https://www.example.org/m-einloggen.html', 'login'],
    ['https://www.example.org/user/chpwd.aspx', 'password_reset'],
    ['https://www.example.org/your-cart.html', 'cart'],
    // Places of accounts.
    ['https://www.example.com.tr/kullanici/giris', 'login'],
    // APIs: tokens and files.
    ['https://api.example.org/token', 'oauth'],
    ['https://www.example.org/api/v1/token', 'oauth'],
    ['https://www.example.org/oauth-get-access-token', 'oauth'],
    ['https://api.example.org/upload/file/json', 'upload'],
    ['https://www.example.org/api/upload/file', 'upload'],
    // Mailing lists, by their names.
    ['https://lists.example.org/mailman/options/dev', 'subscribe'],
    ['https://www.example.org/sympa/subscribe/users', 'subscribe'],
    // First labels of hosts, with the group that they are for.
    ['https://customer-login.example.org/', 'login'],
    ['https://mitlogin.example.dk/', 'login'],
    // The last step of an order in other languages.
    ['https://www.example.fr/ma-commande', 'checkout'],
    ['https://www.example.ru/oformlenie-zakaza', 'checkout'],
    ['https://www.example.nl/bestelling', 'checkout'],
    // Words beside the site's own name, in any case and spelling.
    ['https://www.carfinder.com/mycarfinder', 'account'],
    ['https://www.carfinder.com/My-CarFinder.html', 'account'],
    ['https://www.carfinder.de/mein-carfinder', 'account'],
    ['https://www.car-finder.de/x/mein-car-finder-login.html', 'login'],
    ['https://www.carfinder.com/servlet/CarfinderLogonForm', 'login'],
    ['https://shop.carfinder.co.uk/sign-in-carfinder', 'login'],
    // A single word in the fragment of a front page opens a form.
    ['https://www.example.org/#login', 'login'],
    ['https://www.example.org/?splash=0#Sign-In', 'login'],
    ['https://www.example.org/index.jsp#login', 'login'],
    // Endpoints on hosts that also have documentation.
    ['https://developer.api.example.org/authentication/v2/token', 'oauth'],
    ['https://developers.example.org/o/authorize/', 'oauth'],
    ['https://www.example.org/forum/index.php?act=auth', 'login'],
    // Products that control access to others, and have paths of their own.
    ['https://www.example.org/cgi-bin/koha/opac-user.pl', 'login'],
    ['https://www.example.org/Citrix/StoreWeb/', 'login'],
    ['https://www.example.org/vpn/tmindex.html', 'login'],
    ['https://www.example.org/_forms/default.aspx', 'login'],
    ['https://www.example.org/patroninfo~S1', 'login'],
    ['https://www.example.org/F?func=bor-login', 'login'],
  ])('%s', (url, rule) => {
    expect(judge(url)).toBe(`deny rules/${rule}`);
  });
});

describe('a token against forged requests', () => {
  it.each([
    ...[
      '_csrf',
      'csrf_token',
      'csrfmiddlewaretoken',
      '_xsrf',
      'authenticity_token',
      '__RequestVerificationToken',
      '_token',
    ],
    ...['form_key', 'sesskey', 'formhash', 'securitytoken', 'my_post_key', 'YII_CSRF_TOKEN', 'csrf_test_name'],
  ])('%s says that the URL acts, whatever else it says', (name) => {
    for (const path of ['/x1', '/x1/y.php', '/']) {
      expect(judge(`https://www.example.org${path}?id=4&${name}=1a2b3c4d5e`)).toMatch(/^deny rules\//);
      expect(judge(`https://www.example.org${path}?id=4`)).toMatch('allow');
    }
  });

  it.each([
    'pay_for_order=true',
    'order_again=12',
    'apply_coupon=x1',
    'PayerID=x1',
    'http_method=DELETE',
    'cmd=_xclick',
    'cmd=_s-xclick',
  ])('and so does what a shop does by a parameter: %s', (query) =>
    expect(judge(`https://www.example.org/x1?${query}`)).toMatch(/^deny /),
  );
});

describe('a request to authorize or to authenticate somebody', () => {
  const message = 'fZJNT8MwDIb/SpRabcdefg';
  const parameters = [
    ...['code', 'token', 'id_token', 'code id_token', 'code token', 'id_token token'].map((type) => [
      'response_type',
      type,
    ]),
    ...['checkid_setup', 'checkid_immediate'].map((mode) => ['openid.mode', mode]),
    ['wa', 'wsignin1.0'],
    ...['SAMLRequest', 'SAMLResponse', 'SAMLart'].map((name) => [name, message]),
  ] as [string, string][];

  it.each(parameters)('is told by its own parameters, whatever the path: %s=%s', (name, value) => {
    for (const path of ['/', '/x1', '/as/authorization.oauth2', '/x1/index.jsp', '/#/x1']) {
      for (const spelled of [name, name.toUpperCase()]) {
        const query = new URLSearchParams([
          ['client_id', 'x1'],
          [spelled, value],
        ]);
        expect(judge(`https://www.example.org${path}?${query}`)).toBe('deny rules/oauth');
      }
    }
  });

  it.each(['response_type=json', 'response_type=', 'wa=12', 'openid.mode=cancel', 'SAMLRequest=1', 'code=token'])(
    'is not told by %s',
    (query) => expect(judge(`https://www.example.org/x1?${query}`)).toBe('allow default/classified_read'),
  );
});

describe('reading matter that names an act', () => {
  it.each([
    // Words that end like a login, names with an `@` in them, and titles of threads.
    'https://www.example.org/kis-login',
    'https://www.example.org/x/a@login',
    'https://forum.example.org/threads/facebook-login.123/',
    'https://www.example.org/wiki/Page#Login/Register',
    'https://www.example.org/#welcome/tour',
    'https://customers.example.org/stories',
    'https://www.example.org/conference/sessions/new',
    'https://www.example.org/book/confirmed-kill',
    'https://docs.example.org/articles/write-ahead',
    'https://support.example.no/kundeservice/innlogging-nettbank.html',
    // What a server for signing in publishes about itself.
    'https://accounts.google.com/.well-known/openid-configuration',
    'https://auth.example.org/.well-known/oauth-authorization-server',
    'https://sso.example.org/realms/main/.well-known/openid-configuration',
    'https://login.example.org/.well-known/jwks.json',
    'https://auth.example.org/.well-known/oauth-protected-resource',
    // A paper by its number, a chapter of a manual, and hosts with nothing but specifications.
    'https://papers.example.edu/viewdoc/summary?doi=10.1000/182',
    'https://docs.example.org/manual/reference/operator/comment/',
    'https://governance.example.org/reference/projects/nova.html',
    'https://pubs.opengroup.org/onlinepubs/9699919799/functions/remove.html',
    // Offices, colleges and registers by their names, and articles below a word for a form.
    'https://www.example.edu/administration/president',
    'https://www.example.de/verwaltung/aemter',
    'https://cas.example.edu/academic-programs/majors.html',
    'https://register.example.org.uk/firms',
    'https://www.example.org/donations/ways-to-donate',
    'https://www.example.gov/registration/visa',
    'https://www.example.de/buergerdienste/anmeldung/',
    'https://www.example.org/info/payment',
    'https://www.example.org/design-patterns/login',
    'https://www.example.org/series/upload',
    // Products that are named after a way to log in, and payments as a topic.
    'https://www.example.org/products/single-sign-on',
    'https://www.example.org/solutions/social-login',
    'https://www.example.org/payments',
    'https://www.example.org/en/payments',
    // Titles.
    'https://www.example.org/conference/presentation/login',
    'https://www.example.org/tracks/checkout',
    'https://www.example.org/archives/checkout',
    // Documentation in two words, and specifications.
    'https://www.example.org/technical-documentation/api/authorize',
    'https://www.example.org/integration-guide/oauth',
    'https://www.example.org/spec/register',
    // Help in other languages.
    'https://assistance.example.fr/mobile/gerer-mon-compte',
    'https://www.example.cz/podpora/nastaveni',
    'https://www.example.de/hilfe-und-kontakt/kundenkonto',
    'https://www.example.org/viewpost.jsp?thread=164293',
    // A wiki, and a user's page on a forge.
    'https://namu.wiki/w/%ED%9A%8C%EC%9B%90%EA%B0%80%EC%9E%85',
    'https://sourceforge.net/u/somebody/profile/',
    // The subject of the documentation below it, feeds, and pages about an offer.
    'https://www.example.org/apis/accounts/docs/reference.html',
    'https://www.example.org/register/javadoc/x',
    'https://iam.example.org/feed/',
    'https://www.example.org/checkout/features',
    'https://www.example.org/conta/quem-somos',
    // Explanations in other languages.
    'https://www.example.se/hur-byta-losenord',
    'https://www.example.hr/kako-promijeniti-lozinku',
    'https://www.example.id/cara-daftar-akun',
    // A product that has the site's own name, a heading, and a topic on a host for documentation.
    'https://www.carfinder.com/carfinder-checkout',
    'https://www.example.org/guide/#login',
    'https://www.example.org/#page=login',
    'https://www.example.org/#account',
    'https://developers.example.org/identity/protocols/oauth2',
    'https://developers.example.org/en/docs/api-reference/token',
    // Source files, on hosts that also have a login.
    'https://sourcegraph.com/github.com/a/b/-/blob/src/login/index.ts',
    'https://review.opendev.org/c/openstack/keystone/+/1/2/login/api.py',
    // Troubleshooting, rules and catalogs of universities, and hosts for documentation.
    'https://www.example.org/troubleshooting/reset-password.htm',
    'https://www.example.edu/policies-and-procedures/registration/',
    'https://acme.readme.io/webhooks',
    'https://acme.mintlify.app/api/login',
  ])('%s', (url) => {
    expect(judge(url)).toBe('allow default/classified_read');
  });

  it.each([
    // The same words in places where something is done.
    ['https://www.example.org/account/docs', 'account'],
    ['https://www.example.org/login/docs/x', 'login'],
    ['https://www.example.org/my', 'account'],
    ['https://www.example.org/account/payments', 'account'],
    ['https://www.example.org/payments/new', 'booking'],
    ['https://www.example.org/about-us/login', 'login'],
    ['https://www.example.org/support/sso', 'login'],
    ['https://www.example.org/single-sign-on', 'login'],
    ['https://www.example.org/podpora/prihlaseni', 'login'],
    ['https://sourceforge.net/auth/', 'oauth'],
    ['https://review.opendev.org/login/', 'login'],
    ['https://sourcegraph.com/sign-in', 'login'],
    ['https://acme.readme.io/login', 'login'],
    ['https://www.example.edu/registration/', 'signup'],
    ['https://sourcegraph.com/users/somebody/settings', 'account'],
  ])('%s', (url, rule) => {
    expect(judge(url)).toBe(`deny rules/${rule}`);
  });
});

describe('the title of a thread or an article, by where it stands', () => {
  it.each([
    'https://community.example.com/t5/Accounts/Change-password/td-p/123456',
    'https://community.example.com/en/t5/Login/Login/m-p/123456#M12',
    'https://meta.example.org/t/change-password/123456',
    'https://meta.example.org/t/log-in/123456/4',
    'https://www.example.com/2024/05/01/login.html',
    'https://www.example.com/tecnologia/2024/01/01/contrasena.htm',
    'https://www.example.com/2024/05/01/technology/passwords.html',
    'https://community.example.com/t5/Login/bd-p/login',
    'https://community.example.com/t5/Account/ct-p/account',
    'https://meta.example.org/c/account/5',
    'https://meta.example.org/c/support/login/12',
  ])('%s', (url) => {
    expect(judge(url)).toBe('allow default/classified_read');
  });

  it.each([
    ['https://community.example.com/t5/user/userloginpage', 'login'],
    ['https://community.example.com/t5/Login/bd-p/x/login', 'login'],
    ['https://community.example.com/t5/forums/postpage/board-id/general', 'post'],
    ['https://community.example.com/t5/forums/replypage/board-id/general/message-id/12', 'post'],
    ['https://community.example.com/t5/Accounts/Change-password/td-q/123456', 'password_reset'],
    ['https://community.example.com/Accounts/Change-password/td-p/123456', 'password_reset'],
    ['https://mail.example.com/t/unsubscribe/123456', 'subscribe'],
    ['https://mail.example.com/c/unsubscribe/123456', 'action_get'],
    ['https://meta.example.org/c/login', 'login'],
    ['https://meta.example.org/c/account/5/edit', 'account'],
    ['https://meta.example.org/x/account/5', 'account'],
    ['https://www.example.org/t/change-password/123456/confirm', 'password_reset'],
    ['https://www.example.org/t/change-password/token', 'password_reset'],
    ['https://www.example.org/x/change-password/123456', 'password_reset'],
    ['https://www.example.com/2024/05/01/login.php', 'login'],
    ['https://www.example.com/2024/05/01/users/login', 'login'],
    ['https://www.example.com/2024/05/users/login.html', 'login'],
    ['https://www.example.com/2024/05/01/a/b/login.html', 'login'],
  ])('is not %s', (url, rule) => {
    expect(judge(url)).toBe(`deny rules/${rule}`);
  });
});

describe('a parameter that is a path', () => {
  it.each([
    ['https://docs.example.com', /^allow/],
    ['https://www.example.com', /^deny rules\/settings/],
  ])('has the context of host and path, on a verified page as on any other: %s', (origin, verdict) => {
    const known = { found: true, pages: { help: `${origin}/page` } };
    for (const behind of ['', '#/x', '#/blog/x', '#top'])
      for (const evidence of [known, { found: true }])
        expect(judge(`${origin}/page?/x/settings&m=1${behind}`, evidence)).toMatch(verdict);
  });
});

describe('owners, on hosts whose own pages are known', () => {
  const hosts = shipped.document.places.flatMap(({ hosts: names, own }) =>
    own === undefined ? [] : names.map((name) => ({ name, own })),
  );

  it('have names that are words for an act elsewhere', () => {
    const names = ['auth0', 'phpmyadmin', 'TYPO3', 'umbraco', 'Horde', 'webmail'];
    for (const name of names) expect(judge(`https://www.example.org/${name}/${name}`)).toMatch(/^deny/);
    const urls = hosts.flatMap(({ name: host }) => names.map((name) => `https://${host}/${name}/checkout`));
    expect(urls.length).toBeGreaterThan(100);
    expect(urls.filter((url) => !judge(url).startsWith('allow'))).toEqual([]);
  });

  it('are none of the own pages, however these are written', () => {
    const spellings = [
      (name: string) => name,
      (name: string) => name.toUpperCase(),
      (name: string) => `${name}/`,
      (name: string) => `${name}.`,
      (name: string) => `${name};a=1`,
      (name: string) => `${name}%20`,
      (name: string) => `%${name.charCodeAt(0).toString(16)}${name.slice(1)}`,
      (name: string) => `/${name}`,
      (name: string) => `a/../${name}`,
      (name: string) => `${name}\u200b`,
      (name: string) => String.fromCodePoint(...[...name].map((sign) => (sign.codePointAt(0) ?? 0) + 0xfee0)),
    ];
    const urls = hosts.flatMap(({ name: host, own }) =>
      own
        .filter((name) => /^[a-z]+$/.test(name) && judge(`https://www.example.org/${name}`).startsWith('deny'))
        .flatMap((name) => spellings.map((spell) => `https://${host}/${spell(name)}`)),
    );
    expect(urls.length).toBeGreaterThan(5000);
    expect(urls.filter((url) => !judge(url).startsWith('deny'))).toEqual([]);
  });

  it('have pages where something is done all the same', () => {
    const acts = ['auth0/lock/issues/new', 'auth0/lock/upload/main', 'openid/AppAuth-iOS/security/advisories/new'];
    for (const path of acts) expect(judge(`https://github.com/${path}`)).toMatch(/^deny rules/);
  });

  it('can be told on hosts of the licensee', () => {
    const policy = licenseePolicy({
      add: { places: [{ hosts: ['git.example.com'], own: ['login', 'user'], title: ['/@/{}'] }] },
    });
    const on = (path: string) => judge(`https://git.example.com${path}`, {}, 'GET', policy);
    expect(on('/auth0/checkout')).toBe('allow default/classified_read');
    expect(on('/login')).toBe('deny rules/login');
    expect(on('/Log_in')).toBe('deny rules/login');
    expect(() => licenseePolicy({ add: { places: [{ hosts: ['git.example.com'], own: ['Login'] }] } })).toThrow(/own/);
  });
});

describe('a file of another kind than a page', () => {
  // These lists hold whole names of files.
  const files = ['secret_filename', 'project_filename'].map((name) => shipped.tokens.ordinal(name));
  const words = [...shipped.tokens.entries()]
    .filter(({ token, lists }) => /^[a-z][a-z0-9]*$/.test(token) && !lists.some((list) => files.includes(list)))
    .map(({ token }) => token);

  it.each(['h', 'c', 'ts', 'rs', 'map'])('is no word together with its extension: %s', (extension) => {
    const names = words
      .filter((word) => word.length > extension.length + 1 && word.endsWith(extension))
      .map((word) => `${word.slice(0, -extension.length)}.${extension}`);
    expect(names.length).toBeGreaterThan(0);
    const places = (name: string): string[] => [`/${name}`, `/a/${name}`, `/?page=${name}`, `/a/${name}%3Fx`];
    const denied = names
      .flatMap(places)
      .map((place) => `https://shop.example.org${place}`)
      .filter((url) => judge(url) !== 'allow default/classified_read');
    expect(denied).toEqual([]);
  });
});

describe('a URL in hexadecimal digits', () => {
  const digits = Buffer.from('http://10.0.0.1/').toString('hex');

  it.each(['', '+', '-', '_', '__', '+-', '0', '%20', '%2B', '&x'])('is read with %j behind it', (sign) => {
    expect(judge(`https://example.org/?x=${digits}${sign}`)).toBe('deny rules/nested_internal');
  });
});

describe('a dot segment', () => {
  it.each([
    ['/a/%2f..', 'deny rules/encoded_traversal'],
    ['/a/..%af', 'deny rules/encoded_traversal'],
    ['/a..%c0%af.', 'deny rules/encoded_traversal'],
    // With punctuation after the dots it is a name.
    ['/a/%2f..+', 'allow default/classified_read'],
    ['/a/..%af_', 'allow default/classified_read'],
    ['/a..%c0%af.$', 'allow default/classified_read'],
  ])('is dots and nothing else: %s', (path, expected) => {
    expect(judge(`https://example.org${path}`)).toBe(expected);
  });
});

describe('what the names of folders say of the pages below them', () => {
  /** A path and the rule that denies it; `-` if no rule does. */
  it.each([
    // A folder that is named after a place for reading matter.
    ['/service-hilfe/passwort-vergessen/', '-'],
    ['/aide-contact/mot-de-passe-oublie', '-'],
    ['/informacje-i-pomoc/zmiana-hasla', '-'],
    ['/service-hilfe/login', 'login'],
    ['/city-guide/account', '-'],
    ['/city-guide/login', 'login'],
    ['/service-hilfe', '-'],
    ['/hilfe-portal-x1/passwort-vergessen', 'password_reset'],
    ['/login-help/reset-password', 'password_reset'],
    ['/account-help/close-account', 'account'],
    ['/service-hilfe.php/passwort-vergessen', 'password_reset'],
    // The department that describes accounts. People do not sign in there.
    ['/it-services/password-change', '-'],
    ['/it-services/login', 'login'],
    ['/it/password-change', 'password_reset'],
    // A dictionary: every word is a topic, and an entry ends the path. A site in that folder has more segments.
    ['/seo-lexikon/login/', '-'],
    ['/hosting-glossary/c/cart', '-'],
    ['/glossary-of-hosting/checkout', '-'],
    ['/glossaire/paiement', '-'],
    ['/web-glosario/login?x=1', '-'],
    ['/hosting-terminology/phpmyadmin/', '-'],
    ['/terminology/webmail', '-'],
    ['/hosting-terminology/phpmyadmin/index.php', '-'],
    ['/terminology/wp-admin/post.php', 'admin'],
    ['/seo-lexikon/wp-login.php', 'login'],
    ['/seo-lexikon/.env', 'secret_file'],
    ['/seo-lexikon/?do=login', 'login'],
    ['/seo-lexikon/#/login', 'login'],
    ['/password-glossary/login', 'login'],
    ['/seolexikon/login', 'login'],
    ['/seo-lexikon.php/login', 'login'],
    ['/seo-lexikon;x/login', '-'],
    ['/login/x1/seo-lexikon/x2', 'login'],
    // Names of several words announce nothing by themselves, because anyone can choose such a name.
    ['/futuri-studenti/lauree-triennali/iscrizione', 'signup'],
    ['/rund-ums-fahrzeug/alles-ueber-autos/anmelden/', 'login'],
    // The kind of a search may follow the word for it.
    ['/search/label/Payment', '-'],
    ['/quotes/tag/login', '-'],
    ['/quotes/x1/tag/login', '-'],
    ['/quotes/tag/x1/login', 'login'],
    // A word for what the page holds.
    ['/registration/fees', '-'],
    ['/mitglied-werden/fragen', '-'],
    ['/settings/requirements', 'settings'],
    // The plural of a form is a gallery.
    ['/collection/login-forms', '-'],
    ['/collection/login-form', 'login'],
  ])('%s: %s', (path, rule) => {
    const verdict = judge(`https://www.example.org${path}`);
    expect(verdict).toBe(rule === '-' ? 'allow default/classified_read' : `deny rules/${rule}`);
  });

  it('is documentation before documentation where the host is a help center', () => {
    expect(judge('https://support.example.org/user-management/docs/invite-a-user/')).toMatch('allow');
    expect(judge('https://www.example.org/user-management/docs/invite-a-user/')).toMatch('deny rules/admin');
    expect(judge('https://support.example.org/docs/')).toMatch('allow');
    expect(judge('https://support.example.org/login/docs/x1')).toMatch('deny rules/login');
  });

  it('excuses no host for letting people in', () => {
    expect(judge('https://sso.example.org/service-hilfe/x1')).toMatch('deny rules/login');
  });
});

describe('what looks like an act, and is read', () => {
  it.each([
    // Sections by topic, rules of a university and life at it, rights and formalities.
    'https://www.example.de/themen/digitales/online-anmeldung-12345',
    'https://www.example.fr/assure/droits-demarches/retraite/inscription',
    'https://www.example.gov/how-do-i/register',
    'https://www.example.gov/basics/get-started/sign-up',
    'https://www.example.edu/academics/calendar/registration',
    'https://www.example.edu/student-life/housing/reservations',
    'https://www.example.edu/lectures/auth',
    // Dictionaries in many languages.
    'https://www.example.de/woerterbuch/englisch-deutsch/login',
    'https://www.example.pl/slownik/logowanie',
    'https://www.example.nl/woordenboek/inloggen',
    'https://www.example.cz/slovnik/prihlaseni',
    'https://www.example.se/ordbok/logga-in',
    // A name that begins with an article is prose.
    'https://www.example.de/en/the-checkout.html',
    'https://www.example.org/the-login',
    // A word for an act in one language that is a name, or another word, in other languages.
    'https://www.example.de/poster/katzen',
    'https://www.example.org/2026/program/poster',
    'https://www.example.edu/lamar/history',
    'https://www.example.org/people/sil',
    'https://www.example.es/entre/amigos',
    'https://www.example.no/alta/weather',
    'https://www.example.com/kasa/smart-plugs',
    'https://www.example.es/caixa/history',
    'https://www.example.ar/plata/noticias',
    'https://www.example.com/payer/resources',
    'https://www.example.com/commander/decks',
    // Offers, by kind and place.
    'https://www.example.de/kaufen/wohnung/berlin',
    'https://www.example.fr/acheter/maison/lyon',
    'https://www.example.es/comprar/pisos/madrid',
    // Departments of a shop.
    'https://www.example.de/kategorie/warenkorb',
    'https://www.example.fr/categorie/panier',
    'https://www.example.es/categoria/carrito',
    'https://www.etsy.com/market/shopping_bag',
    'https://apps.shopify.com/one-page-checkout',
    // Jobs: how to apply, and to whom.
    'https://karriere.example.de/bewerbung/bewerbungsprozess',
    'https://www.example.com/careers/apply/hiring-process',
    'https://www.example.com/career-advice/letters/sign-off',
    'https://boards.greenhouse.io/checkout/jobs/12345',
    'https://ir.example.com/ir-overview/profile/default.aspx',
    'https://www.example.com/case-study/checkout',
    // Lists of a wiki about a page with that name.
    'https://en.wikipedia.org/wiki/Special:WhatLinksHere/Login',
    'https://de.wikipedia.org/wiki/Spezial:Linkliste/Anmelden',
    'https://en.wikipedia.org/wiki/Special:Contributions/Login',
  ])('%s', (url) => {
    expect(judge(url)).toBe('allow default/classified_read');
  });

  it.each([
    ['https://www.example.de/themen', 'https://www.example.de/themen-login/anmelden', 'login'],
    ['https://www.example.edu/academics', 'https://www.example.edu/academics/login', 'login'],
    ['https://apps.shopify.com/reviews', 'https://apps.shopify.com/login', 'login'],
    [
      'https://en.wikipedia.org/wiki/Special:Log',
      'https://en.wikipedia.org/wiki/Special:WhatLinksHere/Special:UserLogin',
      'login',
    ],
  ])('as %s is, but not what is done there', (read, act, rule) => {
    expect(judge(read)).toBe('allow default/classified_read');
    expect(judge(act)).toBe(`deny rules/${rule}`);
  });
});

describe('a word for an act that stands for other things as well', () => {
  /** A path and the rule that denies it; `-` if no rule does. */
  it.each([
    ['/alta/weather', '-'],
    ['/alta', 'signup'],
    ['/kasa/smart-plugs', '-'],
    ['/kasa', 'checkout'],
    ['/payer/resources', '-'],
    ['/facture/payer', 'checkout'],
    ['/payer/118', 'action_get'],
    ['/kaufen/wohnung/berlin', '-'],
    ['/produkt/5/kaufen', 'checkout'],
    ['/index.php?do=comprar', 'action_get'],
    ['/index.php?aktion=kaufen', 'action_get'],
    ['/x?action=order', 'action_get'],
    ['/immobilien?type=kaufen', '-'],
    // Recovery of other things than accounts.
    ['/conditions/stroke/recovery/', '-'],
    ['/disaster/recovery/grants', '-'],
    ['/recovery/start', 'password_reset'],
    ['/en/users/recovery/start', 'password_reset'],
    ['/en/recovery/4f2a9b7c1d', 'password_reset'],
    ['/x/index.php?action=recovery', 'password_reset'],
    ['/?recovery', 'password_reset'],
    ['/user_recovery.php', 'password_reset'],
    ['/RecoveryForm.aspx', 'password_reset'],
    ['/ui/recovery', 'password_reset'],
    ['/api/recovery', 'password_reset'],
    ['/index.php/recovery', 'password_reset'],
    ['/mein/konto/recovery', 'password_reset'],
    ['/conditions/stroke_recovery.php', '-'],
  ])('%s: %s', (path, rule) => {
    expect(judge(`https://www.example.org${path}`)).toBe(
      rule === '-' ? 'allow default/classified_read' : `deny rules/${rule}`,
    );
  });
});

describe('acts by what is done to what', () => {
  it.each([
    ['https://www.example.de/flug-buchen', 'booking'],
    ['https://www.example.es/comprar-billete', 'booking'],
    ['https://www.example.es/reservar-mesa', 'booking'],
    ['https://www.example.fr/reserver-un-vol', 'booking'],
    ['https://www.example.it/prenota-tavolo', 'booking'],
    ['https://www.example.nl/vlucht-boeken', 'booking'],
    ['https://www.example.com/booking/find-flights', 'booking'],
    ['https://www.example.com/posts/12345/react', 'action_get'],
    ['https://www.example.com/doctor/12345/appointment', 'action_get'],
    ['https://www.example.com/notifications', 'account'],
    ['https://www.example.de/merkzettel', 'account'],
    ['https://www.example.com/my/notifications', 'account'],
    ['https://www.example.pt/conta/registo', 'account'],
    ['https://www.example.cat/inici-sessio', 'login'],
    ['https://www.example.lv/lv/ienakt', 'login'],
    ['https://www.example.es/Proxy2/AuthenticateCitizen', 'login'],
    ['https://www.example.com/forgot-username-password', 'password_reset'],
    ['https://en.wikipedia.org/wiki/Special:MyTalk', 'account'],
    ['https://en.wikipedia.org/wiki/Special:ConfirmEmail/0a1b2c3d', 'account'],
    ['https://github.com/acme/widget/compare/main...b:x?quick_pull=1', 'action_get'],
  ])('%s', (url, rule) => {
    expect(judge(url)).toBe(`deny rules/${rule}`);
  });

  it.each([
    'https://www.example.com/blog/notifications',
    'https://docs.example.com/notifications',
    'https://www.example.com/products/notifications',
    'https://www.example.com/shop/notifications',
    'https://www.example.com/us/en/online-checkout',
    'https://www.example.org/users/somebody/bookmarks',
    'https://ir.example.com/press',
    'https://www.example.de/ratgeber/flug-buchen',
  ])('is not %s', (url) => {
    expect(judge(url)).toBe('allow default/classified_read');
  });
});

describe('what is bought', () => {
  const words = [...phrasesOf(shipped.document.tokens['buy_word']!)].map((word) => word.replaceAll(' ', '-'));

  it('is told by the number or the key behind the word, in every language', () => {
    const keys = ['123', 'a1b2c3d4e5', 'item/998877'];
    const urls = words.flatMap((word) =>
      keys.map((key) => `https://example.org/x1/${encodeURIComponent(word)}/${key}`),
    );
    expect(urls.length).toBeGreaterThan(100);
    expect(urls.filter((url) => !judge(url).startsWith('deny'))).toEqual([]);
  });

  it('is not where a name follows, or reading matter stands before', () => {
    const urls = words.flatMap((word) => [
      `https://example.org/${encodeURIComponent(word)}/laptops`,
      `https://example.org/blog/${encodeURIComponent(word)}/123`,
    ]);
    expect(urls.filter((url) => !judge(url).startsWith('allow'))).toEqual([]);
  });
});

describe('recovery', () => {
  it('is of an account where a program has the name, and behind a language', () => {
    for (const path of [
      '/x/recovery.php',
      '/a/b/recovery.do',
      '/x/Recovery.action;a=b',
      '/en/recovery',
      '/pt-br/recovery/',
    ])
      expect(judge(`https://example.org${path}`)).toBe('deny rules/password_reset');
  });

  it('is of people, data and economies elsewhere', () => {
    for (const path of ['/conditions/stroke/recovery', '/x/recovery.html', '/x/recovery.aspx', '/blog/recovery.php'])
      expect(judge(`https://example.org${path}`)).toBe('allow default/classified_read');
  });
});

describe('hosts of wikis, of programs and of what they work with', () => {
  it('have names in their paths', () => {
    const names = [
      'minecraft.wiki/w/Login',
      'runescape.wiki/w/Account',
      'wiki.debian.org/PasswordReset',
      'wiki.ubuntu.com/Login',
      'tvtropes.org/pmwiki/pmwiki.php/Main/Password',
      'store.steampowered.com/app/12345/Checkout/',
      'zapier.com/apps/webhook/integrations',
      'n8n.io/integrations/webhook/',
    ];
    for (const name of names) expect([name, judge(`https://${name}`)]).toEqual([name, 'allow default/classified_read']);
  });

  it('have pages on which something is done all the same', () => {
    const acts = [
      'minecraft.wiki/w/Special:UserLogin',
      'minecraft.wiki/w/index.php?title=Special:UserLogin',
      'minecraft.wiki/w/Login?action=edit',
      'wiki.debian.org/Login?action=login',
      'wiki.debian.org/FrontPage?action=newaccount',
      'store.steampowered.com/checkout/',
      'zapier.com/sign-up',
    ];
    for (const act of acts) expect([act, judge(`https://${act}`).slice(0, 4)]).toEqual([act, 'deny']);
  });
});

describe('a section of a newspaper', () => {
  it('has articles, and a login all the same', () => {
    for (const path of [
      'wirtschaft/verbraucher/bezahlen',
      'ekonomi/betalning',
      'economie/banques/paiement',
      'gazdasag/vasarlas',
    ])
      expect(judge(`https://example.org/${path}`)).toBe('allow default/classified_read');
    for (const path of ['wirtschaft/login', 'ekonomi/logga-in', 'politica/iniciar-sesion'])
      expect(judge(`https://example.org/${path}`)).toBe('deny rules/login');
  });
});

describe('what others wrote', () => {
  it('is read by the page, and in a section of opinions', () => {
    for (const path of [
      '/a-b/comment-page-2/',
      '/a-b/comment-page-12/#comment-5',
      '/voices/comment',
      '/a-b/comments-page-3',
    ])
      expect(judge(`https://blog.example.org${path}`)).toBe('allow default/classified_read');
  });

  it('is written to what has a number, by a program, and where no section can be', () => {
    for (const path of ['/items/5/comment', '/comment', '/en/comment/', '/x/Comment.php?id=5', '/a-b/add-comment'])
      expect(judge(`https://example.org${path}`)).toMatch(/^deny rules\/(?:comment|post)$/);
  });
});

describe('pages about people', () => {
  it('are read where they are of many, or shown', () => {
    for (const path of [
      '/student-profiles/jane',
      '/member-profiles/jane',
      '/seller-profile/acme',
      '/memberlist.php?mode=viewprofile&u=2',
      '/documents/View_Detail.aspx?ItemID=278',
      '/view-details/5',
      '/customer-information/',
      '/member-details?id=12',
    ])
      expect(judge(`https://www.example.org${path}`)).toBe('allow default/classified_read');
    expect(judge('https://profile.example.org/2652595')).toBe('allow default/classified_read');
  });

  it('are of an account where they are one’s own', () => {
    for (const path of ['/my-profiles', '/user-profile/5', '/edit-profile', '/user-details', '/customer-settings'])
      expect(judge(`https://www.example.org${path}`)).toMatch(/^deny rules\/(?:account|settings)$/);
    expect(judge('https://profile.example.org/')).toBe('deny rules/account');
  });
});

describe('what a publisher, a shop or a content management system has', () => {
  it.each([
    'https://press.example.org/publish/author-guidance',
    'https://journals.example.org/images/fileUpload/documents/guidelines.pdf',
    'https://music.example.com/newrelease',
    'https://www.example.com/newwiki/index.php/Crawler',
    'https://www.iana.org/domains/root/db/login.html',
  ])('is read: %s', (url) => expect(judge(url)).toBe('allow default/classified_read'));

  it.each([
    ['https://www.example.org/publish', 'post'],
    ['https://www.example.org/x/new-wiki', 'post'],
    ['https://www.example.org/fileUpload.aspx', 'upload'],
    ['https://www.example.org/FileUpload/', 'upload'],
  ])('takes something: %s', (url, rule) => expect(judge(url)).toBe(`deny rules/${rule}`));
});

describe('more acts by what is done to what', () => {
  it.each([
    // Presenters of the framework Nette: `sign` is followed by in, out or up.
    ['https://example.cz/sign/in', 'login'],
    ['https://example.cz/cs/sign/out/', 'login'],
    ['https://example.cz/admin/sign/up', 'login'],
    // A blog adds a number to a page whose name is taken.
    ['https://example.org/cart-2/', 'cart'],
    ['https://example.org/checkout-3/', 'checkout'],
    ['https://example.org/mein-konto-2/', 'account'],
    ['https://example.org/register-2/', 'signup'],
    ['https://example.org/lost-password-2/', 'password_reset'],
    ['https://example.org/x1/add', 'post'],
    ['https://example.pl/x1/dodaj', 'post'],
    ['https://example.org/events/new', 'post'],
    ['https://example.org/groups/create', 'post'],
    ['https://example.org/x1/place-an-ad', 'post'],
    ['https://example.org/jobs/postYourResume.aspx', 'post'],
    ['https://example.org/Profile/AddToRecipeBox?recipeId=1', 'action_get'],
    ['https://example.org/comment-subscriptions/?srk=a1b2', 'subscribe'],
    ['https://example.fr/activer-un-code.php', 'action_get'],
    ['https://pledge.example.org/', 'checkout'],
    ['https://subscribe.example.com/mag/?form=paid', 'checkout'],
    ['https://connect.example.com/token', 'oauth'],
  ])('%s', (url, rule) => expect(judge(url)).toBe(`deny rules/${rule}`));

  it.each([
    'https://example.org/collections/new',
    'https://example.org/recipes/new',
    'https://example.org/blog/conditions/add',
    'https://example.org/privacy-policy-2/',
    'https://example.org/basket-2/',
    'https://example.org/a/sign/b',
  ])('not %s', (url) => expect(judge(url)).toBe('allow default/classified_read'));
});

describe('accounts', () => {
  it('are what a bank offers, before their names', () => {
    for (const path of [
      '/retail/accounts/savings-account',
      '/en/personal-banking/accounts/current-account.html',
      '/accounts/money-market',
      '/personal/accounts/checking/',
    ])
      expect(judge(`https://www.example-bank.com${path}`)).toBe('allow default/classified_read');
  });

  it('are somebody’s by their number, at the end of the path, and before what is changed there', () => {
    for (const path of [
      '/accounts/',
      '/en/accounts',
      '/accounts/123/',
      '/accounts/a1b2c3d4e5',
      '/accounts/settings',
      '/accounts/security/',
      '/accounts/delete',
      '/account/savings',
    ])
      expect(judge(`https://www.example.com${path}`)).toMatch(/^deny rules\/(?:account|settings|action_get)$/);
  });
});

describe('a word for an act that is a section as well', () => {
  it.each([
    'https://www.example.fr/Basket/Actualites/paris-monaco/1234567',
    'https://www.example.it/basket/serie-a/classifica',
    'https://www.example.de/sport/basket/',
    'https://www.example.com/women/bag/leather',
    'https://sports.example.com/sports/tennis/players/profile?playerId=399',
    'https://www.example.org/addiction/withdrawal/alcohol',
    'https://www.example.fr/resiliation/assurance-auto',
    'https://www.example.de/karriere/bewerben/tipps',
    'https://www.example.fr/inscription/tarifs',
    'https://www.example.com/hosting/cpanel',
  ])('is read with more below it, or below what says so: %s', (url) => {
    expect(judge(url)).toBe('allow default/classified_read');
  });

  it.each([
    ['https://www.example.co.uk/basket', 'cart'],
    ['https://www.example.co.uk/gb/basket/', 'cart'],
    ['https://www.example.co.uk/basket/view', 'cart'],
    ['https://www.example.de/index.php?cl=basket', 'cart'],
    ['https://www.example.com/withdrawal', 'checkout'],
    ['https://www.example.fr/contrat/resiliation', 'account'],
    ['https://www.example.de/stelle/bewerben', 'post'],
    ['https://www.example.fr/inscription', 'signup'],
    ['https://www.example.fr/inscription/1234', 'signup'],
    ['https://www.example.es/registro/usuario', 'signup'],
    ['https://www.example.com/cpanel', 'admin'],
    ['https://www.example.com/sports/login', 'login'],
  ])('is an act where it ends the path: %s', (url, rule) => {
    expect(judge(url)).toBe(`deny rules/${rule}`);
  });
});

describe('a date in the path', () => {
  it('is one with parameters of a segment, too', () => {
    // After a date comes a title, which announces no documentation.
    for (const path of ['/2024/5/docs.php', '/2024;a=b/5/docs.php', '/2024/05;jsessionid=0A1B2C/docs.php'])
      expect(judge(`https://bordbestilling.example.org${path}`)).toBe('deny rules/booking');
    expect(judge('https://www.example.org/2024;a=b/05/login')).toBe(judge('https://www.example.org/2024/05/login'));
  });
});

describe('the name of a parameter that is a path', () => {
  it('ends before an escaped &, whatever stands around', () => {
    for (const name of [
      'gin/settings/%20%2f',
      'gin/settings/%20%2f%26x=',
      'gin/settings/%20%26x=',
      'gin/settings%26x=',
    ])
      expect(judge(`https://www.example.org/?${name}`)).toBe('deny rules/settings');
  });
});

describe('a command as the value of a parameter that names an act', () => {
  const COMMANDS = ['create', 'save', 'update', 'enable', 'disable', 'transfer', 'assign', 'unlock', 'refund', 'apply'];
  const NAMES = ['action', 'do', 'act', 'cmd', 'op', 'task', 'mode', 'method', 'event'];

  it.each(NAMES)('%s: alone, with what it is done to before or behind it, and behind a dot', (name) => {
    const values = COMMANDS.flatMap((verb) => [verb, `item.${verb}`]);
    const taken = ['update', 'save', 'delete', 'cancel', 'approve', 'assign', 'refund'];
    const compounds = taken.flatMap((verb) => [
      `${verb}Item`,
      `${verb}_item`,
      `item_${verb}`,
      `${verb}Item.x`,
      `${verb}Item&x`,
    ]);
    const missed = [...values, ...compounds].filter(
      (value) => !judge(`https://www.example.org/x.php?${name}=${encodeURIComponent(value)}&id=5`).startsWith('deny'),
    );
    expect(missed).toEqual([]);
  });

  const SAVES: Readonly<Record<string, string>> = {
    de: 'speichern',
    fr: 'enregistrer',
    es: 'guardar',
    pt: 'salvar',
    it: 'salva',
    nl: 'opslaan',
    pl: 'zapisz',
    cs: 'ulozit',
    sk: 'uložiť',
    hu: 'mentes',
    ro: 'salveaza',
    sv: 'spara',
    da: 'gem',
    no: 'lagre',
    fi: 'tallenna',
    tr: 'kaydet',
    el: 'αποθήκευση',
    ru: 'сохранить',
    uk: 'зберегти',
    bg: 'запази',
    hr: 'spremi',
    sr: 'сачувај',
    sl: 'shrani',
    et: 'salvesta',
    lv: 'saglabat',
    lt: 'issaugoti',
    ca: 'desar',
    vi: 'luu',
    id: 'simpan',
    ja: '保存',
    zh: '储存',
    ko: '저장',
    ar: 'حفظ',
    he: 'שמור',
    fa: 'ذخیره',
    th: 'บันทึก',
    hi: 'सहेजें',
  };

  it.each(Object.entries(SAVES))('in %s', (_language, value) => {
    expect(judge(`https://www.example.org/x.php?action=${encodeURIComponent(value)}`)).toBe('deny rules/action_get');
  });

  it.each(['?mode=archive', '?action=view&id=5', '?mode=list', '?task=show', '?mode=report', '?action=get_posts'])(
    'does not stand in %s',
    (query) => {
      expect(judge(`https://www.example.org/x.php${query}`)).toBe('allow default/classified_read');
    },
  );
});

describe('a program that changes something', () => {
  const VERBS = ['update', 'save', 'enable', 'disable', 'renew', 'assign', 'refund', 'restore', 'verify', 'delete'];

  it('is denied with the verb before what is changed, and behind it', () => {
    const paths = VERBS.flatMap((verb) => {
      const last = `${verb[0]!.toUpperCase()}${verb.slice(1)}`;
      return [`${verb}Item.do`, `${verb}_item.php`, `Item${last}.aspx`, `item_${verb}.php`, `item${last}`];
    });
    expect(paths.filter((path) => judge(`https://www.example.org/x/${path}`) !== 'deny rules/action_get')).toEqual([]);
  });

  it.each([
    ['/x/get%E2%84%AAlogin', 'deny rules/login'],
    ['/x/view%E2%84%AAlogon', 'deny rules/login'],
    ['/x/boo%E2%84%AAingsdelete', 'deny rules/action_get'],
  ])('is recognized in %s, whose Kelvin sign is a k in lower case', (path, verdict) => {
    expect(judge(`https://www.example.org${path}`)).toBe(verdict);
  });

  it.each(['/meeting-place', '/product-insert', '/data-restore'])('is not %s: of two words it is a noun', (path) => {
    expect(judge(`https://www.example.org${path}`)).toBe('allow default/classified_read');
  });
});

describe('the end of a session', () => {
  it.each(['OALogout.jsp', 'ForceLogout', 'x.do?dispatch=auth.logout', 'index.php?main_page=logoff'])(
    'is %s',
    (path) => {
      expect(judge(`https://www.example.org/a/${path}`)).toMatch(/^deny rules\/(?:action_get|login)$/);
    },
  );

  const LOGOUTS: Readonly<Record<string, string>> = {
    de: 'ausloggen',
    fr: 'se-déconnecter',
    es: 'cierre-de-sesion',
    pt: 'terminar-sessao',
    ro: 'deconectare',
    et: 'logi-valja',
    lv: 'izrakstities',
    lt: 'atsijungti',
    sl: 'odjava',
    mk: 'одјави-се',
    bg: 'изход',
    ca: 'tancar-sessio',
    eu: 'itxi-saioa',
    gl: 'pechar-sesion',
    tr: 'oturumu-kapat',
    he: 'התנתקות',
    ar: 'تسجيل-الخروج',
    fa: 'خروج-از-سیستم',
    hi: 'लॉग-आउट',
    bn: 'লগ-আউট',
    th: 'ออกจากระบบ',
  };

  it.each(Object.entries(LOGOUTS))('in %s', (_language, name) => {
    expect(judge(`https://www.example.org/${encodeURIComponent(name)}`)).toBe('deny rules/action_get');
  });
});

describe('a token', () => {
  it('is asked for where it is the whole path, and at the end of an interface in the plural', () => {
    for (const url of [
      'https://www.example.org/token',
      'https://api.example.org/v1/tokens',
      'https://developer.example.org/account/access_token',
      'https://www.example.org/oauth1a/request',
      'https://www.example.org/as/revoke_token.oauth2',
    ])
      expect([url, judge(url)]).toEqual([url, 'deny rules/oauth']);
    expect(judge('https://www.example.org/tokens')).toBe('allow default/classified_read');
  });
});
