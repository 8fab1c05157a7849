/*
 * Renews the parts marked data-live from their own page, and adds the local time to times in UTC. Everything works without this script.
 * It never turns text into markup: parts arrive as parsed documents, and everything else is written as text.
 */
/** Failures that are not shown: a single one may mean that the console is being started again. */
const FAILURES_TOLERATED = 1;
const RETRY_MAX_SECONDS = 30;

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
    // The browser parses it as a separate document, in which no script runs.
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

/** Whether the user has the focus, a selection or opened details in a part. */
function isInUse(part) {
  const marked = getSelection();
  return (
    part.contains(document.activeElement) ||
    part.querySelector('details[open]') !== null ||
    (marked !== null && !marked.isCollapsed && marked.containsNode(part, true))
  );
}

function takeOver(page) {
  for (const old of document.querySelectorAll('[data-live]')) {
    const next = page.getElementById(old.id);
    if (next === null || isInUse(old)) continue;
    const copy = document.importNode(next, true);
    showLocalTimes(copy);
    const scrolled = [...old.querySelectorAll('.wide')].map(({ scrollLeft }) => scrollLeft);
    old.replaceWith(copy);
    // Keep the scroll position.
    for (const [i, wide] of copy.querySelectorAll('.wide').entries()) wide.scrollLeft = scrolled[i] ?? 0;
  }
}

const stale = document.createElement('p');
stale.className = 'notice bad';
stale.setAttribute('role', 'alert');

/** Shows a notice while the page is out of date, so that it is not mistaken for the current state. */
function tellStale(since) {
  if (since === undefined) stale.remove();
  else if (!stale.isConnected) {
    document.querySelector('h1').after(stale);
    const at = since.toISOString().slice(0, 19).replace('T', ' ');
    stale.textContent = `Out of date: the console has not renewed this page since ${at} UTC. It is asked again and again.`;
  }
}

async function renewFor(seconds) {
  let renewedAt = new Date();
  for (let failures = 0; ; ) {
    const waitSeconds = failures === 0 ? seconds : Math.min(seconds * 2 ** failures, RETRY_MAX_SECONDS);
    await new Promise((resolve) => setTimeout(resolve, waitSeconds * 1_000));
    if (document.hidden) continue;
    try {
      const request = await fetchPage(location.href);
      // If the session has ended, the request was redirected to the sign-in.
      if (new URL(request.responseURL).pathname !== location.pathname) {
        location.reload();
        return;
      }
      takeOver(request.response);
      renewedAt = new Date();
      failures = 0;
      tellStale(undefined);
    } catch {
      failures += 1;
      if (failures > FAILURES_TOLERATED) tellStale(renewedAt);
    }
  }
}

showLocalTimes(document);
const zone = document.querySelector('[data-zone]');
if (zone !== null) zone.textContent = `, and below them ${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
const seconds = Number(document.body.dataset.renew);
if (seconds > 0) renewFor(seconds);
