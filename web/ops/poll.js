// Work that is done again and again while somebody looks at it.

// Calls `work` now and then every `everyMs` after it ended, so that two calls never overlap; `again()` while one runs means
// once more when it ends.  A hidden page does not ask; it does so at once when it is shown again.  After failures the pause doubles, up to a minute.  `onFailure` gets the
// error, or null after a success.  Returns { again(), stop() }.
export function poll(work, everyMs, onFailure = () => {}) {
  let timer = null;
  let stopped = false;
  let running = false;
  let isAsked = false;
  let failures = 0;

  async function run() {
    clearTimeout(timer);
    isAsked ||= running;
    if (stopped || running) return;
    if (document.hidden) return; // `visibilitychange` starts it again
    running = true;
    try {
      await work();
      failures = 0;
      if (!stopped) onFailure(null);
    } catch (error) {
      failures += 1;
      if (!stopped) onFailure(error);
    }
    running = false;
    if (isAsked) {
      isAsked = false;
      run();
    } else if (!stopped) timer = setTimeout(run, Math.min(everyMs * 2 ** Math.min(failures, 8), Math.max(60_000, everyMs)));
  }

  document.addEventListener('visibilitychange', run);
  window.addEventListener('online', run);
  run();
  return {
    again: run,
    stop() {
      stopped = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', run);
      window.removeEventListener('online', run);
    },
  };
}
