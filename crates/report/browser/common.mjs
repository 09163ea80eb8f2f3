// What both checks begin with: what they were called with, the accessibility rules, and Chromium.
import { chromium } from "playwright-core";
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";

// [what to look at, where screenshots go]; the second is made where it is named.
export function called(usage) {
  const [subject, screenshots] = process.argv.slice(2);
  if (!subject) {
    console.error(`usage: node ${usage} [SCREENSHOTS]`);
    process.exit(2);
  }
  if (screenshots) mkdirSync(screenshots, { recursive: true });
  return [subject, screenshots];
}

export const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"],
});
