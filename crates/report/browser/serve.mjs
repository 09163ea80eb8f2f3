// Looks at `fstone serve` in Chromium as a reader would: the list, a report, two runs compared by clicking, a history, the
// progress of a run that goes on, and what is refused. See README.md.
import { axe, called, launch } from "./common.mjs";
import { resolve } from "node:path";

const [address, screenshots] = called("serve.mjs ADDRESS");
// The address has a token in it; every page after the first goes without.
const url = `${new URL(address).origin}/`;
const problems = [];
const check = (what, holds) => { if (!holds) { problems.push(what); console.log(`FAILED ${what}`); } };

const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
page.on("console", (message) => message.type() === "error" && check(`console: ${message.text()}`, false));
page.on("pageerror", (error) => check(`page: ${error.message}`, false));
page.on("request", (request) => request.url().startsWith(url) || request.url().startsWith("data:") || check(`it loads ${request.url()}`, false));

// The checks that every page has to pass.
const look = async (name) => {
  for (const [width, height] of [[1280, 900], [390, 844]]) {
    await page.setViewportSize({ width, height });
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    check(`${name} is ${over} pixels too wide at ${width}`, over <= 0);
    await page.evaluate(axe);
    for (const finding of await page.evaluate(async () => (await window.axe.run()).violations)) {
      check(`${name}: axe: ${finding.id}: ${finding.help} (${finding.nodes[0].html.slice(0, 120)})`, false);
    }
    if (screenshots) await page.screenshot({ path: resolve(screenshots, `serve-${name}-${width}.png`), fullPage: true });
  }
  await page.setViewportSize({ width: 1280, height: 900 });
};

try {
  await page.goto(address);
  check(`the token stays in ${page.url()}`, page.url() === url);
  const runs = await page.locator("tbody tr").count();
  check(`${runs} runs`, runs >= 2);

  // A run that begins, and its progress, without touching the page.
  await page.waitForSelector("[data-live]", { timeout: 40000 }).catch(() => check("a run that begins is not seen", false));
  await look("board");
  const words = page.locator("[data-live] [data-words]").first();
  if (await words.count()) {
    const before = await words.textContent();
    await page.waitForFunction((before) => document.querySelector("[data-words]")?.textContent !== before, before, { timeout: 15000 })
      .catch(() => check(`no progress: ${before}`, false));
  } else {
    check("no run is going on", false);
  }

  await page.goto(url);
  await page.locator('input[name=before][value="1"]').check();
  await page.locator('input[name=after][value="2"]').check();
  await page.getByRole("button", { name: "Compare the two" }).click();
  check(`compared: ${await page.title()}`, (await page.title()).startsWith("Run 2 against run 1"));
  await look("compare");
  await page.getByRole("link", { name: "All runs" }).click();
  check("back to the runs", (await page.locator("tbody tr").count()) >= runs);

  await page.getByRole("link", { name: "Run 1", exact: true }).click();
  check("a report", await page.locator("#results").isVisible());
  check("its script ran", (await page.locator(".controls select, #results th button").count()) > 0);
  await page.goto(url);
  await page.getByRole("link", { name: /^History of/ }).first().click();
  check("a history", (await page.locator("#runs tbody tr").count()) >= 2);
  await look("history");
} catch (error) {
  check(error.message.split("\n")[0], false);
}
const cookies = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
await browser.close();

// What a browser cannot be made to send.
const { request } = await import("node:http");
const status = (options) => new Promise((done) => {
  const sent = request({ host: "127.0.0.1", port: new URL(url).port, path: "/", ...options, headers: { Cookie: cookies, ...options.headers } }, (answer) => { answer.resume(); done(answer.statusCode); });
  sent.on("error", () => done(0));
  sent.end();
});
check("another name is refused", (await status({ headers: { Host: "evil.example" } })) === 403);
check("who has no token is refused", (await status({ headers: { Cookie: "" } })) === 403);
check("writing is refused", (await status({ method: "POST" })) === 405);
check("there is no other page", (await status({ path: "/../../etc/passwd" })) === 404);
console.log(problems.length === 0 ? "served pages: ok" : `served pages: ${problems.length} problems`);
process.exit(problems.length === 0 ? 0 : 1);
