// What a person does with an incident. The header marks the request as meant: a foreign page can not set it.
document.querySelectorAll(".actions").forEach((form) => {
  form.elements.who.value = localStorage.getItem("otelmon.who") || "";
  form.querySelector(".without").hidden = true;
  form.querySelectorAll("button").forEach((button) => { button.disabled = false; });
  form.addEventListener("submit", (event) => event.preventDefault());
});
document.querySelectorAll(".actions button").forEach((button) => {
  button.addEventListener("click", async () => {
    const place = button.closest(".actions");
    const status = place.querySelector("[role=status]");
    const body = { who: place.elements.who.value.trim() || "web", note: place.elements.note.value.trim() };
    if (body.who !== "web") localStorage.setItem("otelmon.who", body.who);
    if (button.dataset.label) body.label = button.dataset.label;
    try {
      const answer = await fetch(`/api/v1/incidents/${encodeURIComponent(place.dataset.incident)}/${button.dataset.verb}`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-otelmon": "1" },
        body: JSON.stringify(body),
      });
      if (answer.ok) location.reload();
      else status.textContent = (await answer.json()).error;
    } catch (error) {
      status.textContent = `not done: ${error.message}`;
    }
  });
});
