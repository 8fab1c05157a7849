// Runs in the service worker of the tour: requests two pages on a message, and reports the results.
const ask = async () => {
  const seen = {};
  for (const path of ['/denied-worker', '/ok-worker']) {
    seen[path] = await fetch(path).then(
      async (response) => `${response.status} ${await response.text()}`,
      () => 'failed',
    );
  }
  for (const client of await self.clients.matchAll({ includeUncontrolled: true })) client.postMessage(seen);
};
self.addEventListener('message', (event) => event.waitUntil(ask()));
