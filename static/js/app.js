// What makes the pages quicker. Without it every link and form works as well.
"use strict";

(() => {
  const POLL_MS = 10_000;
  const DRAFT = "draft:";
  const KEYS_OFF = "single-keys-off";

  const announce = (words) => {
    const place = document.getElementById("announcer");
    if (place) place.textContent = words;
  };

  // --- looking for changes: every 10 s with jitter, never in a hidden tab, never touching the rows ---

  const poll = () => {
    if (document.visibilityState === "visible") {
      for (const strip of document.querySelectorAll("[data-poll]")) {
        strip.dispatchEvent(new CustomEvent("ledger:poll"));
      }
    }
    setTimeout(poll, POLL_MS * (0.8 + 0.4 * Math.random()));
  };

  // --- what was typed survives a sign-in and a lost race ---

  const draftName = (form, field) => `${DRAFT}${form.dataset.draft}:${field.name}`;
  const isDraftable = (field) => field.matches("textarea, input[type=text]");

  const restoreDrafts = (root) => {
    for (const form of root.querySelectorAll("form[data-draft]")) {
      for (const field of form.elements) {
        const typed = isDraftable(field) && sessionStorage.getItem(draftName(form, field));
        if (typed && field.value === field.defaultValue && field.value === "") field.value = typed;
      }
    }
  };

  const forgetDrafts = (itemId) => {
    for (const name of Object.keys(sessionStorage)) {
      if (name.startsWith(DRAFT + itemId)) sessionStorage.removeItem(name);
    }
  };

  document.addEventListener("input", ({ target }) => {
    const form = target.closest("form[data-draft]");
    if (form && isDraftable(target)) sessionStorage.setItem(draftName(form, target), target.value);
  });

  // --- copying a whole hash ---

  document.addEventListener("click", async ({ target }) => {
    const button = target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    announce("Copied the whole of it.");
  });

  // --- a button that cannot be pressed says why and does nothing ---

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[aria-disabled=true]");
    if (!button) return;
    event.preventDefault();
    const why = document.getElementById(button.getAttribute("aria-describedby"));
    if (why) announce(why.textContent.trim());
  });

  // --- keys: each presses something visible ---

  const isTyping = (element) => element.matches("input:not([type=checkbox], [type=radio]), textarea, select");
  const isShown = (element) => element.getClientRects().length > 0;

  const press = (key) => {
    const target = [...document.querySelectorAll("[data-key]")].find((e) => e.dataset.key === key && isShown(e));
    if (!target) return false;
    target.focus();
    if (!isTyping(target)) target.click();
    return true;
  };

  const move = (step) => {
    const links = [...document.querySelectorAll("[data-row] [data-open]")];
    if (links.length === 0) return false;
    const here = links.findIndex((link) => link.closest("[data-row]").contains(document.activeElement));
    const next = here < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, here + step));
    links[next].focus();
    links[next].scrollIntoView({ block: "nearest" });
    return true;
  };

  const tick = () => {
    const row = document.activeElement.closest("[data-row]");
    const box = row && row.querySelector("input[type=checkbox][name=item]");
    if (box) box.click();
    return Boolean(box);
  };

  const submitOpenForm = (field) => {
    const button = field.form && field.form.querySelector("[type=submit]");
    if (button) button.click();
    return Boolean(button);
  };

  const pressSingle = (event) => {
    if (localStorage.getItem(KEYS_OFF) || event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === "j") return move(1);
    if (event.key === "k") return move(-1);
    if (event.key === "x") return tick();
    if (event.key === "Enter" && document.activeElement.matches("a, button, summary, input")) return false;
    return press(event.key);
  };

  document.addEventListener("keydown", (event) => {
    const typing = isTyping(event.target);
    let done = false;
    if (event.key === "Escape") done = press("Escape");
    else if (typing && event.key === "Enter" && (event.ctrlKey || event.metaKey)) done = submitOpenForm(event.target);
    else if (!typing) done = pressSingle(event);
    if (done) event.preventDefault();
  });

  // --- after every load and swap ---

  const settle = (root) => {
    for (const hidden of root.querySelectorAll("[data-copy], [data-needs-script]")) hidden.hidden = false;
    restoreDrafts(root);
    const place = root.querySelector("[data-focus]");
    if (!place) return;
    const field = place.querySelector("[aria-invalid=true], form textarea, form select, form input[type=radio]");
    (field || place).focus();
    place.scrollIntoView({ block: "nearest" });
  };

  // --- the code of a link stands behind #: it is sent only with the form, and stays in no history ---

  const takeCode = () => {
    const field = document.querySelector("[data-from-address]");
    if (!field || location.hash.length < 2) return;
    field.value = location.hash.slice(1);
    history.replaceState(null, "", location.pathname);
  };

  const startUp = () => {
    takeCode();
    const answer = document.getElementById("answer");
    if (answer) forgetDrafts(answer.dataset.item);
    settle(document);
    const singleKeys = document.getElementById("single-keys");
    if (singleKeys) {
      singleKeys.checked = !localStorage.getItem(KEYS_OFF);
      singleKeys.addEventListener("change", () => {
        if (singleKeys.checked) localStorage.removeItem(KEYS_OFF);
        else localStorage.setItem(KEYS_OFF, "1");
      });
    }
    setTimeout(poll, POLL_MS * (0.8 + 0.4 * Math.random()));
  };

  document.addEventListener("htmx:afterSwap", ({ target }) => settle(target));
  document.addEventListener("DOMContentLoaded", startUp);
  window.addEventListener("hashchange", takeCode);
})();
