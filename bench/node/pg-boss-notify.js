// pg-boss with a notification in each insert.
import { run } from "./child.js";
import { pgBoss } from "./pg-boss.js";

await run(pgBoss(true));
