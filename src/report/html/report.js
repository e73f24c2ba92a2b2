(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const value = (row, at) => {
    const cell = row.cells[at];
    if (!cell) return "";
    const text = (cell.dataset.v ?? cell.textContent).trim();
    const number = Number.parseFloat(text.replace(/[,#]/g, "").replace("\u2212", "-"));
    return /^[#+\u2212-]?[\d.]/.test(text) && !Number.isNaN(number) ? number : text;
  };
  const order = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return 1;
    if (typeof b === "number") return -1;
    return a < b ? -1 : a > b ? 1 : 0;
  };
  for (const table of all("table.sortable")) {
    all("thead th", table).forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const falls = now ? now === "ascending" : head.classList.contains("num");
        all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", falls ? "descending" : "ascending");
        const rows = all("tbody tr", table).map((row) => [value(row, at), row]);
        rows.sort(([a], [b]) => (falls ? order(b, a) : order(a, b)));
        table.tBodies[0].append(...rows.map(([, row]) => row));
      });
    });
  }
  for (const filter of all(".filter")) {
    const of = document.getElementById(filter.dataset.for);
    if (!of) continue;
    const rows = of.tBodies ? all("tbody tr", of) : all(":scope > details", of);
    if (rows.length < 6) continue;
    filter.hidden = false;
    const input = filter.querySelector("input");
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = (row.tBodies ? row : row.querySelector("summary") ?? row).textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      filter.querySelector("output").textContent = words.length ? `${shown} of ${rows.length}` : "";
    });
  }
  const open = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    const details = target && target.closest("details");
    if (details) {
      details.hidden = false;
      details.open = true;
      details.scrollIntoView();
      details.querySelector("summary").focus({ preventScroll: true });
    }
  };
  addEventListener("hashchange", open);
  open();
})();
