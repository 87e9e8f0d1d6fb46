// pg-boss with two consumers of large batches.
import { pathToFileURL } from "node:url";
import { PgBoss } from "pg-boss";
import { run } from "./child.js";

const start = async (url, options) => {
  const boss = new PgBoss({ connectionString: url, max: 16, ...options });
  boss.on("error", (err) => process.stderr.write(`pg-boss: ${err.message}\n`));
  await boss.start();
  return boss;
};

export const pgBoss = (notify) => ({
  async prepare(url) {
    const boss = await start(url);
    await boss.createQueue("bench", { notify });
    await boss.stop();
  },
  async open(url, act) {
    // Maintenance belongs to the process that works.
    const working = { useListenNotify: notify };
    const boss = await start(url, act === "work" ? working : { supervise: false, schedule: false });
    return {
      enqueue: (payload) => boss.send("bench", payload),
      enqueueBatch: (batch) => boss.insert("bench", batch.map((data) => ({ data }))),
      async work(handle) {
        const id = await boss.work(
          "bench",
          { batchSize: 2000, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 },
          async (jobs) => {
            for (const job of jobs) handle(job.data.number);
          },
        );
        return () => boss.offWork("bench", { id, wait: true });
      },
      close: () => boss.stop({ graceful: false }),
    };
  },
});

if (import.meta.url === pathToFileURL(process.argv[1]).href) await run(pgBoss(false));
