// graphile-worker with the settings of its page on performance.
import { Logger, makeWorkerUtils, run as runWorker } from "graphile-worker";
import { run } from "./child.js";

const quiet = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") process.stderr.write(`${level}: ${message}\n`);
});

const preset = (connectionString) => ({
  worker: {
    connectionString,
    logger: quiet,
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
});

await run({
  async prepare(url) {
    const utils = await makeWorkerUtils({ preset: preset(url) });
    await utils.migrate();
    await utils.release();
  },
  async open(url) {
    const utils = await makeWorkerUtils({ preset: preset(url) });
    return {
      enqueue: (payload) => utils.addJob("bench", payload),
      enqueueBatch: (batch) => utils.addJobs(batch.map((payload) => ({ identifier: "bench", payload }))),
      async work(handle) {
        const runner = await runWorker({
          preset: preset(url),
          noHandleSignals: true,
          taskList: { bench: async (payload) => handle(payload.number) },
        });
        return () => runner.stop();
      },
      close: () => utils.release(),
    };
  },
});
