// Runs in the page of the tour, with OTHER (a host) and STATUSES set before it.
/* global OTHER, STATUSES */
(async () => {
  const seen = {};
  const text = async (url, options) => {
    try {
      const response = await fetch(url, options);
      return `${response.status} ${await response.text()}`;
    } catch {
      return 'failed';
    }
  };
  const event = (target, good, bad) =>
    new Promise((resolve) => {
      for (const name of [good, bad]) target.addEventListener(name, () => resolve(name), { once: true });
      setTimeout(() => resolve('nothing'), 20_000);
    });
  const element = (name, attributes) => {
    const made = document.createElement(name);
    const happened = event(made, 'load', 'error');
    Object.assign(made, attributes);
    document.body.append(made);
    return happened;
  };

  seen['fetch'] = await text('/denied-fetch');
  seen['fetch allowed'] = await text('/ok-fetch');
  const xhr = new XMLHttpRequest();
  xhr.open('GET', '/denied-xhr', false);
  xhr.send();
  seen['xhr'] = xhr.status;
  seen['post'] = await text('/ok-post', { method: 'POST', body: 'x' });
  seen['post allowed'] = await text('/write-post', { method: 'POST', body: 'x'.repeat(100_000) });
  seen['put'] = await text('/ok-put', { method: 'PUT', body: 'x' });
  seen['override'] = await text('/ok-override', { headers: { 'x-http-method-override': 'DELETE' } });
  seen['rewrite'] = await text('/ok-rewrite', { headers: { 'x-original-url': '/denied', 'x-rewrite-url': '/denied' } });
  seen['beacon'] = navigator.sendBeacon('/ok-beacon', 'x');

  seen['image'] = await element('img', { src: '/denied.svg' });
  seen['image allowed'] = await element('img', { src: '/ok.svg' });
  seen['script'] = await element('script', { src: '/denied.js' });
  seen['style'] = await element('link', { rel: 'stylesheet', href: '/denied.css' });
  seen['frame'] = await element('iframe', { src: '/denied-frame' });

  for (const status of STATUSES) {
    seen[`redirect ${status}`] = await text(`/go?status=${status}&to=/denied-hop-${status}`);
    seen[`redirect away ${status}`] = await text(
      `/go?status=${status}&to=${location.protocol}//${OTHER}/hop-${status}`,
      { mode: 'no-cors' },
    );
    seen[`redirect allowed ${status}`] = await text(`/go?status=${status}&to=/ok-hop-${status}`);
  }
  for (const path of ['/refresh', '/script', '/form']) await element('iframe', { src: path });

  const open = (path) =>
    event(new WebSocket(`${location.protocol.replace('http', 'ws')}//${location.host}${path}`), 'message', 'error');
  seen['socket'] = await open('/denied-socket');
  seen['socket read'] = await open('/ok-socket');
  seen['socket allowed'] = await open('/write-socket');

  // Only if the page was loaded over HTTPS.
  if (isSecureContext) {
    const worker = await navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready);
    const answered = new Promise((resolve) => {
      navigator.serviceWorker.addEventListener('message', ({ data }) => resolve(data));
    });
    worker.active?.postMessage('go');
    seen['worker'] = await answered;
  }

  seen['alt-svc'] = (await fetch('/ok-again')).headers.get('alt-svc');
  window.open('/denied-popup');
  window.open('/ok-popup');
  const link = document.createElement('a');
  Object.assign(link, { href: '/ok-download', download: 'file' });
  document.body.append(link);
  link.click();
  await fetch('/write-report', { method: 'POST', body: JSON.stringify(seen) });
})();
