"use strict";
// Puts what the server sends of runs that train into the page. The page is whole without it.
(() => {
  const main = document.querySelector("main[data-live]");
  const places = [...document.querySelectorAll("[data-run]")];
  const show = (id, on) => { document.getElementById(id).hidden = !on; };
  const query = new URLSearchParams({ seen: main.dataset.live });
  for (const p of places) query.append("run", p.dataset.run);
  const source = new EventSource("/live?" + query);
  source.addEventListener("open", () => show("lost", false));
  source.addEventListener("error", () => show("lost", true));
  source.addEventListener("news", () => show("news", true));
  source.addEventListener("run", (e) => {
    const { key, html, say } = JSON.parse(e.data);
    for (const p of places) if (p.dataset.run === key) p.innerHTML = html;
    if (say) document.getElementById("said").textContent = say;
  });
  addEventListener("pagehide", () => source.close());
})();
