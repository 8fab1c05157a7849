/*
 * What moves: parts marked data-live are renewed from the page they came from, and times get the local time beside UTC. Everything works
 * without it. Text is never made into markup here: parts come parsed, and whatever is written is written as text.
 */
/** One failure may be a console that is being started again. */
const FAILURES_UNTOLD = 1;
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

/** Whether somebody reads, types, marks text or has opened something there. */
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
    // What was scrolled to stays in sight.
    for (const [i, wide] of copy.querySelectorAll('.wide').entries()) wide.scrollLeft = scrolled[i] ?? 0;
  }
}

const stale = document.createElement('p');
stale.className = 'notice bad';
stale.setAttribute('role', 'alert');

/** Says above the page that it is old, for as long as it is; who looks at it must not take it for the present state. */
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
      // Whoever is signed out meanwhile is sent elsewhere.
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
      if (failures > FAILURES_UNTOLD) tellStale(renewedAt);
    }
  }
}

showLocalTimes(document);
const zone = document.querySelector('[data-zone]');
if (zone !== null) zone.textContent = `, and below them ${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
const seconds = Number(document.body.dataset.renew);
if (seconds > 0) renewFor(seconds);
