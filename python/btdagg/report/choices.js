// Exhibits of one family are shown one at a time; without scripts all are.
for (const choices of document.querySelectorAll(".choices")) {
  const select = choices.querySelector("select");
  const exhibits = [...choices.querySelectorAll(":scope > .exhibit")];
  const show = () => exhibits.forEach((one, place) => (one.hidden = place !== select.selectedIndex));
  select.addEventListener("change", show);
  choices.querySelector(".choose").hidden = false;
  show();
}
