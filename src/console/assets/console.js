/*
 * What moves: parts marked data-live are renewed from the page they came from, and times get the local time beside UTC. Everything works
 * without it. Text is never made into markup here: parts come parsed, and whatever is written is written as text.
 */
const FAILURES_MAX = 5;

const local = new Intl.DateTimeFormat(undefined, { dateStyle: 'short', timeStyle: 'medium' });

function showLocalTimes(root) {
  for (const time of root.querySelectorAll('time')) {
    if (time.querySelector('.local') !== null) continue;
    const text = document.createElement('span');
    text.className = 'local';
    text.textContent = local.format(new Date(time.dateTime));
    time.append(text);
  }
}

function fetchPage(url) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('GET', url);
    // Parsed by the browser as a page of its own, in which nothing runs.
    request.responseType = 'document';
    request.timeout = 15_000;
    request.setRequestHeader('x-pagegate-renew', '1');
    const fail = () => reject(new Error(`status ${request.status}`));
    request.onload = () => (request.status === 200 && request.response !== null ? resolve(request) : fail());
    request.onerror = fail;
    request.ontimeout = fail;
    request.send();
  });
}

function takeOver(page) {
  for (const old of document.querySelectorAll('[data-live]')) {
    const next = page.getElementById(old.id);
    // Not under the hands of somebody who reads, types or has opened something there.
    const isInUse = old.contains(document.activeElement) || old.querySelector('details[open]') !== null;
    if (next === null || isInUse) continue;
    const copy = document.importNode(next, true);
    showLocalTimes(copy);
    old.replaceWith(copy);
  }
}

async function renewFor(seconds) {
  for (let failures = 0; failures < FAILURES_MAX; ) {
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
    if (document.hidden) continue;
    try {
      const request = await fetchPage(location.href);
      // Whoever is signed out meanwhile is sent elsewhere.
      if (new URL(request.responseURL).pathname !== location.pathname) {
        location.reload();
        return;
      }
      takeOver(request.response);
      failures = 0;
    } catch {
      failures += 1;
    }
  }
}

showLocalTimes(document);
const zone = document.querySelector('[data-zone]');
if (zone !== null) zone.textContent = `, and below them ${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
const seconds = Number(document.body.dataset.renew);
if (seconds > 0) renewFor(seconds);
