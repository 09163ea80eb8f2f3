// Opens the gallery that the tests write in Chromium and checks what only a browser can tell. See README.md.
import { axe, called, launch } from "./common.mjs";
import { readdirSync } from "node:fs";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [gallery, screenshots] = called("check.mjs GALLERY");
const problems = [];
const problem = (where, what) => { problems.push(`${where}: ${what}`); console.log(`FAILED ${where}: ${what}`); };

const browser = await launch();

// Opens a page in a context of its own, runs the checks, and closes it.
async function look(file, options, checks) {
  const where = `${basename(file)} ${JSON.stringify(options)}`;
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && problem(where, message.text()));
  page.on("pageerror", (error) => problem(where, error.message));
  page.on("request", (request) => /^(file|data):/.test(request.url()) || problem(where, `it loads ${request.url()}`));
  try {
    await page.goto(pathToFileURL(file).href);
    await checks(page, (what, holds) => holds || problem(where, what));
  } catch (error) {
    problem(where, error.message.split("\n")[0]);
  }
  await context.close().catch(() => {});
}

// Texts of visible drawings that are cut off by their drawing or that cover each other.
const badTexts = () => {
  const found = [];
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    if (frame.width === 0) continue;
    const texts = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect(), text]);
    for (const [words, box] of texts) {
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) {
        found.push(`"${words}" leaves its figure`);
      }
    }
    // A line of text is taller than its letters: what touches by less than that is not covered.
    const slack = 5;
    for (let i = 0; i < texts.length; i++) {
      for (let j = i + 1; j < texts.length; j++) {
        const [[a, x], [b, y]] = [texts[i], texts[j]];
        const wide = Math.min(x.right, y.right) - Math.max(x.left, y.left);
        const high = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
        if (wide > 1 && high > slack) found.push(`"${a}" and "${b}" cover each other`);
      }
    }
  }
  return found.slice(0, 5);
};
const tooWide = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;

const files = readdirSync(gallery).map((name) => resolve(gallery, name));
const pages = files.filter((file) => file.endsWith(".html"));
const drawings = files.filter((file) => file.endsWith(".svg"));
if (pages.length === 0) problem(gallery, "there is no page; run cargo test -p fstone-report first");

for (const file of drawings) {
  await look(file, {}, async (page, check) => {
    for (const words of await page.evaluate(badTexts)) check(words, false);
  });
}

for (const file of pages) {
  const name = basename(file, ".html");
  const large = name.startsWith("many-");
  // Pages that lead to answers, or list what others answered.
  const leads = ["index", "published-index", "published-ratios"].includes(name);
  for (const options of [{}, { viewport: { width: 390, height: 844 } }, { viewport: { width: 320, height: 640 } }, { colorScheme: "dark" }]) {
    await look(file, options, async (page, check) => {
      check(`it is ${await page.evaluate(tooWide)} pixels too wide`, (await page.evaluate(tooWide)) <= 0);
      if (large) return;
      await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
      for (const words of await page.evaluate(badTexts)) check(words, false);
      if (options.viewport?.width !== 320) {
        // Not as a script element: the page's policy forbids what it did not bring.
        await page.evaluate(axe);
        for (const finding of await page.evaluate(async () => (await window.axe.run()).violations)) {
          check(`axe: ${finding.id}: ${finding.help} (${finding.nodes[0].html.slice(0, 120)})`, false);
        }
      }
      if (screenshots) {
        await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = false; }));
        const kind = options.colorScheme ?? (options.viewport ? `${options.viewport.width}` : "desktop");
        await page.screenshot({ path: resolve(screenshots, `${name}-${kind}.png`), fullPage: true });
      }
    });
  }
  await look(file, { javaScriptEnabled: false }, async (page, check) => {
    check("a control without a script", (await page.locator("button, select, input").count()) === 0);
    check("no answer without scripts", leads || (await page.locator(".lead").first().isVisible()));
  });
  if (large || name === "index") continue;
  await look(file, { viewport: { width: 794, height: 1123 }, colorScheme: "dark" }, async (page, check) => {
    await page.emulateMedia({ media: "print" });
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    check(`paper is ${paper}`, paper === "rgb(255, 255, 255)");
    check(`it is ${await page.evaluate(tooWide)} pixels wider than paper`, (await page.evaluate(tooWide)) <= 0);
    check("controls on paper", (await page.locator(".controls:visible, .switch:visible, nav:visible").count()) === 0);
    if (screenshots) await page.screenshot({ path: resolve(screenshots, `${name}-print.png`), fullPage: true });
  });
}

// What the script does, on a page with everything.
const full = resolve(gallery, "small-file-10.html");
const cells = (page) => page.locator("#results tbody tr:visible").evaluateAll((rows) => rows.map((row) => row.dataset.cell).join(" "));
await look(full, {}, async (page, check) => {
  const planned = await cells(page);
  const sort = page.locator("#results th[data-best] button").first();
  await sort.click();
  const sorted = await cells(page);
  check(`sorting gave ${sorted}`, sorted.startsWith("6 ") && sorted !== planned);
  check("aria-sort", (await page.locator("#results th[data-best]").first().getAttribute("aria-sort")) === "descending");
  await sort.click();
  check("the other way round", (await cells(page)).startsWith("0 "));
  await sort.click();
  check("back to the plan's order", (await cells(page)) === planned);

  const ratios = () => page.locator("#results tr[data-cell='0'] .r").allTextContents();
  check("the baseline has no ratio", (await ratios()).length === 0);
  await page.locator(".controls select").selectOption({ label: "xfs" });
  check(`ratios to xfs: ${await ratios()}`, (await ratios())[0] === "0.78×");
  check("what ratios refer to", (await page.locator("#ratio-note").textContent()).includes("xfs"));

  await page.locator(".controls summary").click();
  await page.locator(".controls input").first().uncheck();
  check("a filtered row is gone", !(await cells(page)).split(" ").includes("0"));
  check("and faint in figures", (await page.locator("svg [data-cell='0'].off").count()) > 0);

  const log = page.locator("figure[data-log] .switch").first();
  await log.click();
  check("a logarithmic axis", (await page.locator("figure[data-log] [data-scale=log]").first().isVisible()));
  await log.click();
  check("and a linear one again", (await page.locator("figure[data-log] [data-scale=linear]").first().isVisible()));

  const dots = page.locator("#figures svg.fs-wide [data-cell='3'] .fs-dots").first();
  await dots.scrollIntoViewIfNeeded();
  const at = await dots.evaluate((path) => {
    const [x, y] = /M([\d.]+) ([\d.]+)/.exec(path.getAttribute("d")).slice(1).map(Number);
    const point = new DOMPoint(x, y).matrixTransform(path.getScreenCTM());
    return [point.x, point.y];
  });
  await page.mouse.move(...at);
  const tip = await page.locator("#tip").textContent();
  check(`trial details: ${tip}`, /ext4 nodelalloc.*trial 1 of 10.*seed 1300/.test(tip));
});
await look(`${full}`, {}, async (page, check) => {
  await page.goto(`${pathToFileURL(full).href}#cell-5`);
  const mark = await page.locator("#cell-5").evaluate((row) => getComputedStyle(row).backgroundColor);
  check("a linked row is marked", mark !== "rgba(0, 0, 0, 0)");
});

await browser.close();
console.log(`${drawings.length} drawings, ${pages.length} pages: ${problems.length === 0 ? "ok" : `${problems.length} problems`}`);
process.exit(problems.length === 0 ? 0 : 1);
