// The measured process of a peer on Node.js: the same lines as package child, see there.
import { createInterface } from "node:readline";
import { writeFileSync } from "node:fs";

const padding = "abcdefghijklmnopqrstuvwxyz012345".repeat(128);

export const payload = (number, bytes) => ({
  number,
  pad: padding.slice(0, Math.max(0, bytes - `{"number":${number},"pad":""}`.length)),
});

const now = () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e6));
const say = (line) => process.stdout.write(line + "\n");
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

const account = () => {
  const began = performance.now();
  const cpu = process.cpuUsage();
  return (jobs) => {
    const used = process.cpuUsage(cpu);
    return {
      jobs,
      seconds: (performance.now() - began) / 1e3,
      cpu: (used.user + used.system) / 1e6,
      peak: process.resourceUsage().maxRSS * 1024,
    };
  };
};

// The wall clock at the start of a process may be off by what it was set since: read anew.
const clockError = () => BigInt(Date.now()) * 1000000n - now();

const writeTimes = (name, times) => {
  const off = clockError();
  // Date.now() has whole milliseconds: only a real jump is corrected.
  const add = off > 2000000n || off < -2000000n ? off : 0n;
  writeFileSync(name, Buffer.from(times.map((t) => (t === 0n ? 0n : t + add)).buffer));
};

const acts = {
  async bulk(task, peer) {
    for (let i = 0; i < task.jobs; i += 1000) {
      const batch = [];
      for (let j = i; j < Math.min(task.jobs, i + 1000); j++) batch.push(payload(j, task.bytes));
      await peer.enqueueBatch(batch);
    }
    return task.jobs;
  },

  async single(task, peer) {
    const until = performance.now() + task.seconds * 1e3;
    let next = 0;
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        while (performance.now() < until) await peer.enqueue(payload(next++, task.bytes));
      }),
    );
    return next;
  },

  async feed(task, peer) {
    const times = new BigInt64Array(task.jobs);
    let due = performance.now();
    for (let i = 0; i < task.jobs; i++) {
      due += task.every * 1e3;
      await sleep(Math.max(0, due - performance.now()));
      await peer.enqueue(payload(i, task.bytes));
      times[i] = now();
    }
    writeTimes(task.out, times);
    return task.jobs;
  },
};

const work = async (task, peer, next, close) => {
  const counts = new Uint8Array(task.jobs);
  const times = new BigInt64Array(task.jobs);
  let handled = 0;
  let said = 0;
  const stop = await peer.work((number) => {
    if (number >= 0 && number < counts.length && counts[number] < 255 && ++counts[number] === 1) times[number] = now();
    handled++;
  });
  const ticker = setInterval(() => {
    if (handled !== said) say(`handled ${(said = handled)}`);
  }, 10);
  const line = await next();
  clearInterval(ticker);
  if (line !== "stop") throw new Error(`told ${line}, want stop`);
  const report = close(handled);
  await stop();
  report.jobs = handled;
  writeFileSync(task.out, counts);
  writeTimes(task.out + ".times", times);
  return report;
};

// run is the life of a child. A peer is { prepare(at), open(at) }, and what open answers is
// { enqueue, enqueueBatch, work(handle) => stop, close }.
export const run = async ({ prepare, open }) => {
  const task = JSON.parse(process.argv[2]);
  if (task.do === "prepare") return prepare(task.at.url);
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const next = async () => (await lines.next()).value;
  const peer = await open(task.at.url, task.do);
  say("ready");
  for (let line = await next(); line !== undefined; line = await next()) {
    if (line !== "go") throw new Error(`told ${line}, want go`);
    const close = account();
    const report = task.do === "work" ? await work(task, peer, next, close) : close(await acts[task.do](task, peer));
    say("report " + JSON.stringify(report));
  }
  await peer.close();
};
