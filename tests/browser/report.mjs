// SPDX-License-Identifier: GPL-2.0-or-later
// What tests/browser/run says, with playwright-core, which carries no browser of its own.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [folder, , pictures] = process.argv.slice(2);
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

/** Opens a report with nothing left over from another one, and gives back what the console said. */
async function open(name, options, act) {
  const profile = mkdtempSync(join(tmpdir(), "sisdiff-browser-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM, headless: true, args: FLAGS, viewport: { width: 1280, height: 900 }, ...options,
  });
  try {
    const page = await context.newPage();
    const said = [];
    page.on("console", (message) => said.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => said.push(`error: ${error.message}`));
    page.on("request", (request) => {
      if (!/^(file|data):/.test(request.url())) said.push(`request: ${request.url()}`);
    });
    await page.goto(`file://${folder}/${name}.html`);
    await act(page);
    assert.deepEqual(said, [], `${name}: the console`);
    const [wide, inner] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= inner, `${name}: the page itself scrolls sideways: ${wide} > ${inner}`);
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

const column = (page, table, at) =>
  page.$$eval(`#${table} tbody tr`, (rows, at) => rows.map((row) => row.cells[at].textContent), at);
const numbers = (texts) => texts.map((text) => Number.parseFloat(text.replaceAll(",", "")));
const shown = (page, selector) => page.$$eval(selector, (all) => all.filter((one) => one.checkVisibility()).length);

async function sorts(page) {
  const before = numbers(await column(page, "comms-1", 1));
  await page.click("#comms-1 thead th:nth-child(2) button");
  const falling = numbers(await column(page, "comms-1", 1));
  assert.deepEqual(falling, [...before].sort((a, b) => b - a));
  await page.click("#comms-1 thead th:nth-child(2) button");
  assert.deepEqual(numbers(await column(page, "comms-1", 1)), [...before].sort((a, b) => a - b));
  assert.equal(await page.getAttribute("#comms-1 thead th:nth-child(2)", "aria-sort"), "ascending");
  // Durations are sorted by time, not by their text.
  await page.click("#comms-1 thead th:last-child button");
  const keys = await page.$$eval("#comms-1 tbody tr td:last-child", (cells) => cells.map((cell) => cell.dataset.v));
  const known = keys.filter((key) => key !== undefined).map(Number);
  assert.deepEqual(known, [...known].sort((a, b) => b - a));
}

async function filters(page) {
  const all = await shown(page, "#comms-1 tbody tr");
  await page.fill(".filter[data-for=comms-1] input", "tick");
  const names = await page.$$eval("#comms-1 tbody tr:not([hidden])", (rows) => rows.map((row) => row.textContent));
  assert.ok(names.length > 0 && names.length < all && names.every((name) => name.includes("tick")), `${names}`);
  await page.fill(".filter[data-for=comms-1] input", "");
  assert.equal(await shown(page, "#comms-1 tbody tr"), all);
  await page.fill(".filter[data-for=explained-list-1] input", "idlecandidate");
  const left = await page.$$eval("#explained-list-1 > details:not([hidden])", (all) => all.map((one) => one.textContent));
  assert.ok(left.length > 0 && left.every((text) => text.includes("IdleCandidate")));
  await page.fill(".filter[data-for=explained-list-1] input", "");
}

async function links(page) {
  assert.equal(await shown(page, ".one .body"), 0);
  await page.click("#differences-1 tbody a[href^='#w1-']");
  await page.waitForFunction(() => document.querySelectorAll(".one[open]").length === 1);
  assert.equal(await shown(page, ".one .body"), 1);
  assert.ok((await page.textContent(".one[open] .walk")).includes("select_idle_sibling()"));
}

async function without_script(page) {
  assert.equal(await shown(page, ".filter"), 0, "no field that does nothing");
  assert.ok((await shown(page, "svg")) >= 4);
  await page.click(".one:nth-child(3) > summary");
  assert.equal(await shown(page, ".one .body"), 1);
  await page.click("#differences-1 tbody a[href^='#w1-']");
  await page.waitForTimeout(300);
  assert.ok((await shown(page, ".one .body")) >= 1);
}

async function keyboard(page) {
  await page.focus("#groups-1-v5_11_mel_v2 thead button");
  await page.keyboard.press("Enter");
  assert.equal(await page.getAttribute("#groups-1-v5_11_mel_v2 thead th", "aria-sort"), "descending");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, "solid");
}

async function take(name, report, options, id, height) {
  await open(report, { viewport: { width: options.width, height }, colorScheme: options.scheme ?? "light" }, async (page) => {
    await page.addStyleTag({ content: "html{scroll-behavior:auto}" }).catch(() => {});
    if (id) {
      await page.evaluate((id) => {
        location.hash = id;
        const details = document.getElementById(id).closest("details");
        if (details) details.open = true;
        (details ?? document.getElementById(id)).scrollIntoView({ behavior: "instant" });
      }, id);
      await page.waitForTimeout(600);
    }
    await page.screenshot({ path: join(pictures, `${name}.png`) });
  });
}

await open("smt8-light-state-truth", {}, async (page) => {
  await links(page);
  await sorts(page);
  await filters(page);
  await keyboard(page);
});
await open("smt8-light-state-truth", { javaScriptEnabled: false }, without_script);
for (const report of ["numa80-truth", "smt8-affinity-truth", "two", "sum"]) {
  for (const [width, colorScheme] of [[1280, "light"], [375, "dark"]]) {
    await open(report, { viewport: { width, height: 800 }, colorScheme }, async (page) => {
      assert.ok((await shown(page, "svg")) >= 4, report);
      await page.emulateMedia({ media: "print", colorScheme });
      const [text, paper] = await page.evaluate(() => {
        const style = getComputedStyle(document.body);
        return [style.color, style.backgroundColor];
      });
      assert.deepEqual([text, paper], ["rgb(27, 31, 36)", "rgb(255, 255, 255)"], "print is dark on light");
      await page.emulateMedia({ media: "screen", colorScheme });
    });
  }
}
await open("funcgraph", { viewport: { width: 375, height: 800 } }, async (page) => {
  assert.equal(await shown(page, "svg"), 2);
  assert.ok((await page.$$eval("svg .axis text", (texts) => texts.filter((text) => text.textContent.endsWith(" us")).length)) >= 6);
});
if (pictures) {
  await take("top", "smt8-light-state-truth", { width: 1100 }, null, 860);
  await take("plots", "smt8-light-state-truth", { width: 1100 }, "scanned-1", 900);
  await take("heat", "numa80-truth", { width: 1100 }, "heat-1", 1260);
  await take("explain", "smt8-light-state-truth", { width: 1100 }, "w1-237", 1100);
  await take("dark", "smt8-light-state-truth", { width: 1100, scheme: "dark" }, "heat-1", 800);
  await take("funcgraph", "funcgraph", { width: 1100 }, "function-1", 480);
  await take("phone", "smt8-light-state-truth", { width: 390 }, null, 844);
  await take("phone-explain", "smt8-light-state-truth", { width: 390, scheme: "dark" }, "w1-237", 844);
}
console.log("tests/browser: reports open without a word on the console; sorting, filters, links, keyboard, no script: fine");
