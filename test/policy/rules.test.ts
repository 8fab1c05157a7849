/** Guard rules and pattern rules, one by one: what each catches, and what it must leave alone. */
import { describe, expect, it } from 'vitest';
import { isPublicSuffix } from '../../src/domain/public-suffix.ts';
import { judge, shipped } from './support.ts';

const FINE = 'allow default/classified_read';

/** The id of the rule that decides, `-` where none does. */
const rule = (url: string, method = 'GET', categories: readonly string[] = []): string => {
  const verdict = judge(url, { categories }, method);
  return verdict === FINE ? '-' : verdict.replace(/^(deny|flag) rules\//, '');
};

describe('guard rules', () => {
  it.each([
    ['ftp://example.org/', 'scheme'],
    ['ws://example.org/', 'scheme'],
    ['gopher://example.org/', 'scheme'],
    ['https://user:word@example.org/', 'userinfo'],
    ['https://@example.org/', 'userinfo'],
    ['https://example.org/\n', 'control_characters'],
    ['https://exam\tple.org/', 'control_characters'],
    ['https:/\\example.org/', 'special_name'],
    ['https://example.org\\@evil.org/', 'backslash'],
    ['https://ex%61mple.org/', 'host_escape'],
    ['https://example.org/a/%2e%2e%2f%2e%2e%2fetc/passwd', 'encoded_traversal'],
    [`https://example.org/${'a/'.repeat(2100)}`, 'too_long'],
    ['https://example.org/?_method=DELETE', 'method_override'],
    ['https://example.org/?X-HTTP-Method-Override=PUT', 'method_override'],
    ['https://example.org/?method=fast', '-'],
    ['http://127.0.0.1/', 'loopback'],
    ['http://127.255.0.9/', 'loopback'],
    ['http://[::1]/', 'loopback'],
    ['http://[::7f00:1]/', 'embedded_address'],
    ['http://169.254.1.1/', 'link_local'],
    ['http://[fe80::1]/', 'link_local'],
    ['http://10.0.0.1/', 'private_network'],
    ['http://172.16.0.1/', 'private_network'],
    ['http://172.32.0.1/', 'public_address'],
    ['http://192.168.1.1/', 'private_network'],
    ['http://[fd00::1]/', 'private_network'],
    ['http://0.0.0.0/', 'reserved_address'],
    ['http://100.64.0.1/', 'reserved_address'],
    ['http://224.0.0.1/', 'reserved_address'],
    ['http://[ff02::1]/', 'reserved_address'],
    ['http://8.8.8.8/', 'public_address'],
    ['http://[2606:4700::1111]/', 'public_address'],
    ['http://0x7f.0.0.1/', 'obfuscated_address'],
    ['http://134744072/', 'obfuscated_address'],
    ['http://[::ffff:8.8.8.8]/', 'embedded_address'],
    ['http://[64:ff9b::7f00:1]/', 'embedded_address'],
    ['http://[2002:7f00:1::]/', 'embedded_address'],
    ['http://[2001:0:53aa:64c:0:0:80ff:fffe]/', 'embedded_address'],
    ['http://[2606:4700::5efe:7f00:1]/', 'embedded_address'],
    ['http://intranet/', 'special_name'],
    ['http://printer.local/', 'special_name'],
    ['http://db.svc.cluster.local/', 'special_name'],
    ['http://router.home.arpa/', 'special_name'],
    ['http://abcdefghij.onion/', 'special_name'],
    ['http://sub.localhost/', 'special_name'],
    ['https://localhost.example.org/', '-'],
    ['https://example.org:8080/', 'port'],
    ['http://example.org:443/', '-'],
    ['https://xn--zzzzzzzz99999.com/', 'idn_invalid'],
    ['https://xn--mnchen-3ya.de/', '-'],
    ['https://münchen.de/', '-'],
    ['https://пример.рф/', '-'],
    ['https://日本語.jp/', '-'],
    ['https://pаypal.com/', 'idn_confusable'],
    ['https://аррӏе.com/', 'idn_confusable'],
    ['https://example.org⧸login.evil.org/', 'idn_invalid'],
    [`https://${'0123456789abcdef'.repeat(3)}.evil.org/`, 'dns_tunnel'],
    [`https://${'abcdefghij.'.repeat(14)}evil.org/`, 'dns_tunnel'],
    ['https://my-branch-name-is-really-quite-long-team-project.vercel.app/', '-'],
    ['https://example.org/?key=AKIAIOSFODNN7EXAMPLE', 'secret_in_url'],
    [`https://example.org/ghp_${'a1B2'.repeat(9)}`, 'secret_in_url'],
    ['https://example.org/?q=%2D%2D%2D%2D%2DBEGIN%20RSA%20PRIVATE%20KEY', 'secret_in_url'],
    [`https://example.org/?t=eyJ${'hbGciOiJIUzI1NiJ9'.repeat(3)}.eyJzdWIiOiIxMjM0In0`, 'secret_in_url'],
    ['https://example.org/?password=hunter2', 'secret_in_url'],
    ['https://example.org/?user[password]=x', 'secret_in_url'],
    ['https://example.org/?api_key=abc', 'secret_in_url'],
    ['https://example.org/?api_key=', '-'],
    ['https://example.org/task-list-of-the-sk-ant-colony', '-'],
    ['https://example.org/?u=http://127.0.0.1/', 'nested_internal'],
    ['https://example.org/?u=http%3A%2F%2F10.0.0.1%2F', 'nested_internal'],
    ['https://example.org/?u=//192.168.0.1/', 'nested_internal'],
    ['https://example.org/?next=169.254.169.254/latest', 'nested_internal'],
    ['https://example.org/?host=localhost:9200', 'nested_internal'],
    ['https://example.org/?url=http://2130706433/', 'nested_internal'],
    ['https://example.org/?url=file:///etc/passwd', 'nested_internal'],
    ['https://example.org/?url=gopher://10.0.0.1:6379/_x', 'nested_internal'],
    ['https://example.org/proxy/http://metadata.google.internal/x', 'nested_internal'],
    ['https://example.org/proxy/http:/10.0.0.1/', 'nested_internal'],
    ['https://example.org/?url=javascript:alert(1)', 'nested_internal'],
    ['https://example.org/?url=%20Java%0ascript%3Aalert(1)', 'nested_internal'],
    ['https://example.org/?a=1&next=data:text/html,x', 'nested_internal'],
    ['https://example.org/?q=javascript:+the+good+parts', '-'],
    ['https://example.org/?url=data', '-'],
    ['https://example.org/?version=10.0.0.1', '-'],
    ['https://example.org/?page=5&to=10.5', '-'],
    [`https://example.org/?a=${'http://b.org/,'.repeat(20)}`, 'nested_internal'],
    ['https://example.org/?a=1;password=hunter2', 'secret_in_url'],
    ['https://example.org/?a=1;url=localhost', 'nested_internal'],
    ['https://example.org/?x=1;_method=DELETE', 'method_override'],
    ['https://example.org/?a=1;b=2', '-'],
    [`https://example.org/?t=sk-${'a1B2c3D4'.repeat(6)}`, 'secret_in_url'],
    ['https://example.org/sk-bratislava-hotel-0123456789', '-'],
    ['https://example.org/a%252fb', 'double_encoding'],
    ['https://example.org/%25%36cogin', 'double_encoding'],
    ['https://example.org/%256cogin', 'double_encoding'],
    ['https://example.org/%%36%63ogin', 'double_encoding'],
    [`https://example.org/?q=%25%36%37hp_${'a1B2'.repeat(9)}`, 'double_encoding'],
    ['https://example.org/?url=http%25%33A//127.0.0.1/', 'double_encoding'],
    ['https://example.org/100%25%20pure', '-'],
    ['https://example.org/v1/..%20/admin', 'encoded_traversal'],
    ['https://example.org/v1/%20..%20.%20/admin', 'encoded_traversal'],
    ['https://example.org/v1/..%c2%a0/admin', 'encoded_traversal'],
    ['https://example.org/x%09', 'encoded_traversal'],
    ['https://example.org/x%0a/y', 'encoded_traversal'],
    ['https://example.org/wait..%20what/..x', '-'],
    ['https://example.org/100%25', '-'],
  ])('%s: %s', (url, expected) => {
    expect(rule(url)).toBe(expected);
  });

  it.each([
    [['Malware'], 'category_threat'],
    [['Phishing', 'News'], 'category_threat'],
    [['News'], '-'],
    [[], '-'],
  ])('a domain in %j: %s', (categories, expected) => {
    expect(rule('https://example.org/', 'GET', categories)).toBe(expected);
  });

  it('name no suffix as special that a registry gives names under', () => {
    const special = shipped.document.rules.find((entry) => entry.id === 'special_name')?.suffixes ?? [];
    expect(special.length).toBeGreaterThan(15);
    const delegated = special.filter((suffix) => !suffix.includes('.') && !['arpa', 'onion'].includes(suffix));
    // The list's default rule takes any single label for a suffix; one that it knows has a name below it that is one, too, or an ICANN section.
    expect(delegated.filter((suffix) => isPublicSuffix(`co.${suffix}`, { private: true }))).toEqual([]);
  });
});

describe('pattern rules', () => {
  it.each([
    ['/login', 'login'],
    ['/Login.aspx', 'login'],
    ['/users/sign_in', 'login'],
    ['/SignIn', 'login'],
    ['/en/sign-in/', 'login'],
    ['/login/index.php', 'login'],
    ['/login;jsessionid=AB', 'login'],
    ['/%6C%6Fgin', 'login'],
    ['/ｌｏｇｉｎ', 'login'],
    ['/connexion', 'login'],
    ['/se-connecter', 'login'],
    ['/anmelden', 'login'],
    ['/iniciar-sesion', 'login'],
    ['/iniciar-sesión', 'login'],
    ['/entrar', 'login'],
    ['/accedi', 'login'],
    ['/inloggen', 'login'],
    ['/zaloguj', 'login'],
    ['/войти', 'login'],
    ['/вход', 'login'],
    ['/ログイン', 'login'],
    ['/登录', 'login'],
    ['/로그인', 'login'],
    ['/giris-yap', 'login'],
    ['/تسجيل-الدخول', 'login'],
    ['/đăng-nhập', 'login'],
    ['/index.php?page=login', 'login'],
    ['/ucp.php?mode=login', 'login'],
    ['/index.php?route=account/login', 'login'],
    ['/app#/login', 'login'],
    ['/app#!/login?x', 'login'],
    ['/app#login', '-'],
    ['/assets/login.css', '-'],
    ['/account.pdf', '-'],
    ['/.well-known/security.txt', '-'],
    ['/.well-known/change-password', 'password_reset'],
    ['/login-tips', '-'],
    ['/blog/login-tips', '-'],
    ['/loginfo', '-'],
    ['/oauth/authorize', 'oauth'],
    ['/connect/authorize', 'oauth'],
    ['/docs/oauth', '-'],
    ['/forgot-password', 'password_reset'],
    ['/account/password', 'password_reset'],
    ['/passwort-vergessen', 'password_reset'],
    ['/mot-de-passe-oublie', 'password_reset'],
    ['/index.php?do=lostpw', 'password_reset'],
    ['/help/reset-password', '-'],
    ['/signup', 'signup'],
    ['/registrieren', 'signup'],
    ['/会員登録', 'signup'],
    ['/checkout', 'checkout'],
    ['/kasse', 'checkout'],
    ['/finalizar-compra', 'checkout'],
    ['/cart', 'cart'],
    ['/warenkorb', 'cart'],
    ['/panier', 'cart'],
    ['/upload', 'upload'],
    ['/upload/pictures/a.jpg', '-'],
    ['/wp-content/uploads/2024/a.pdf', '-'],
    ['/my-account', 'account'],
    ['/user/security', 'account'],
    ['/mein-konto', 'account'],
    ['/profile', 'account'],
    ['/profile/jane-doe', '-'],
    ['/help/account/closing', '-'],
    ['/settings', 'settings'],
    ['/einstellungen/', 'settings'],
    ['/wp-admin/', 'admin'],
    ['/administrator/index.php', 'admin'],
    ['/phpmyadmin', 'admin'],
    ['/wiki/Foo?action=edit', 'wiki_edit'],
    ['/w/index.php?title=Foo&action=submit', 'wiki_edit'],
    ['/?a=1;action=edit', 'wiki_edit'],
    ['/items/5/delete/;x', 'action_get'],
    ['/;x/login', 'login'],
    ['/wiki/Special:Upload', 'wiki_edit'],
    ['/wiki/Foo?action=history', '-'],
    ['/posts/new-post', '-'],
    ['/new-topic', 'post'],
    ['/intent/tweet', 'post'],
    ['/wp-comments-post.php', 'comment'],
    ['/article?replytocom=5', 'comment'],
    ['/newsletter', 'subscribe'],
    ['/newsletter/2024-05', '-'],
    ['/unsubscribe', 'subscribe'],
    ['/items/5/delete', 'action_get'],
    ['/logout', 'action_get'],
    ['/x?action=delete', 'wiki_edit'],
    ['/x?do=logout', 'action_get'],
    ['/x?confirmation_token=abc', 'action_get'],
    ['/webhooks/incoming', 'webhook'],
    ['/docs/webhooks', '-'],
    ['/.env', 'secret_file'],
    ['/.git/config', 'secret_file'],
    ['/app/.env.production', 'secret_file'],
    ['/wp-config.php.bak', 'secret_file'],
    ['/id_rsa', 'secret_file'],
    ['/environment', '-'],
    ['/?next=https://evil.org/', 'open_redirect'],
    ['/?next=%2F%2Fevil.org', 'open_redirect'],
    ['/?next=https://www.example.org/x', '-'],
    ['/?next=/x', '-'],
    [`/?q=${'word+'.repeat(300)}`, 'bulk_query'],
    [`/?q=${'aGVsbG8gd29ybGQ0'.repeat(12)}`, 'bulk_query'],
    [`/${'aGVsbG8gd29ybGQ0'.repeat(12)}`, 'bulk_query'],
    [`/${'a-title-in-many-words-'.repeat(9)}`, '-'],
    ['/f?X-Amz-Signature=0123456789abcdef0123456789abcdef', 'signed_url'],
    ['/f?sig=1', '-'],
    ['/setup.exe', 'executable'],
    ['/install.SH', 'executable'],
    ['/paper.pdf', '-'],
    ['/', '-'],
    ['/pricing', '-'],
    ['/en/products/widget-3000', '-'],
  ])('%s: %s', (path, expected) => {
    expect(rule(`https://example.org${path}`)).toBe(expected);
  });

  it.each([
    ['https://login.example.org/', 'login'],
    ['https://sso.example.co.uk/x', 'login'],
    ['https://account.example.org/overview', 'account'],
    ['https://upload.example.org/', 'upload'],
    ['https://id.example.org/security', 'account'],
    ['https://app.example.org/.well-known/security.txt', '-'],
    ['https://login.org/', '-'],
    ['https://login.co.uk/', '-'],
    ['https://login.github.io/', '-'],
    ['https://login.example.org/legal/', '-'],
    ['https://help.example.org/manage-account/', '-'],
  ])('%s: %s', (url, expected) => {
    expect(rule(url)).toBe(expected);
  });

  it('do not depend on the URL judged before', () => {
    const urls = [
      'https://help.example.org/',
      'https://example.org/login?page=cart',
      'https://example.org/setup.exe',
      'https://example.org/account',
    ];
    const alone = urls.map((url) => rule(url));
    for (const [at, url] of urls.entries()) {
      for (const before of urls) {
        rule(before);
        expect(rule(url)).toBe(alone[at]);
      }
    }
  });

  it('are about forty with the guards, each with a note; notes of denials say that a retry will not help', () => {
    const { rules } = shipped.document;
    expect(rules.length).toBeGreaterThanOrEqual(38);
    expect(rules.length).toBeLessThanOrEqual(50);
    for (const entry of rules) {
      expect(entry.note.length).toBeGreaterThan(20);
      if (entry.verdict === 'deny') expect(entry.note).toContain('This is policy: a retry will not help.');
    }
  });
});
