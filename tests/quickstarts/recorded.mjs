// Gives a page's program a function that records a tool: who was called, with what, and what it returned or threw.
import { appendFileSync } from "node:fs";

globalThis.recorded = (tool) => async (given) => {
  const entry = { tool: tool.name, arguments: given };
  try {
    entry.result = await tool(given);
    return entry.result;
  } catch (error) {
    entry.error = error.message;
    throw error;
  } finally {
    appendFileSync(process.env.RECORD, JSON.stringify(entry) + "\n");
  }
};
